"""Lowering of a static graph to one FX GraphModule, and the recorder that builds it."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import fx, nn
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode, unset_fake_temporarily
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode, ShapeEnv
from torch.overrides import TorchFunctionMode, resolve_name

from graphnet.errors import UnsupportedOp
from graphnet.ir.graph import Graph, Node
from graphnet.lower import torch_ops_all
from graphnet.lower.table import Scope
from graphnet.lower.torch_linear import restore_linear
from graphnet.lower.torch_tensors import to_torch, torch_dtype

NODE_KEY = "graphnet_nodes"
"""Key of `fx.Node.meta`: names of the GraphIR nodes whose work the FX node does."""


def covered_nodes(node: fx.Node) -> tuple[str, ...]:
    """Names of the GraphIR nodes whose work an FX node does."""
    covered: tuple[str, ...] = node.meta.get(NODE_KEY, ())
    return covered


def lower(graph: Graph, tensors: Mapping[str, np.ndarray]) -> fx.GraphModule:
    """The graph as a module taking the inputs in graph order and returning a tuple of the outputs.

    Weights are its parameters and buffers. Raises UnsupportedOp.
    """
    graph, covers = restore_linear(graph)
    recorder = Recorder(covers)
    env: dict[str, Any] = {}
    for item in graph.inputs:
        if any(isinstance(dim, str) for dim in item.shape):
            raise UnsupportedOp(f"torch: input '{item.name}' has symbolic shape {item.shape}; bind the graph first")
        env[item.name] = recorder.placeholder(item.name, tuple(int(d) for d in item.shape), torch_dtype(item.dtype))
    for name, weight in graph.weights.items():
        env[name] = recorder.weight(name, to_torch(tensors[name]), trainable=weight.role == "parameter")
    scope = Scope(torch_ops_all.TORCH, graph, env, tensors, recorder.literal, around=recorder.around)
    return recorder.finish(scope.run())


class Recorder(TorchFunctionMode):
    """Records every PyTorch call made while it is active into an FX graph, running it on fake tensors.

    Rules are ordinary PyTorch code: they see real shapes and dtypes. A call that returns no tensor (a shape, a dtype)
    or returns its own argument (a cast to the same dtype) leaves no trace.
    """

    def __init__(self, covers: Mapping[str, tuple[str, ...]]) -> None:
        super().__init__()
        self._covers = covers
        self._root = nn.Module()
        self._graph = fx.Graph()
        self._fake = FakeTensorMode(shape_env=ShapeEnv())
        self._nodes: dict[int, fx.Node] = {}
        self._alive: list[torch.Tensor] = []
        self._sizes: dict[Any, tuple[torch.Tensor, int]] = {}
        self._current = ""

    def placeholder(self, name: str, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """A graph input."""
        with self._fake:
            value = torch.empty(shape, dtype=dtype)
        return self._bind(value, self._graph.placeholder(_identifier(name)))

    def weight(self, name: str, tensor: torch.Tensor, *, trainable: bool) -> torch.Tensor:
        """A tensor held by the module: a parameter where it is a trainable float, else a buffer."""
        attribute = self._fresh(_identifier(name))
        if trainable and (tensor.is_floating_point() or tensor.is_complex()):
            self._root.register_parameter(attribute, nn.Parameter(tensor, requires_grad=False))
        else:
            self._root.register_buffer(attribute, tensor)
        with self._fake:
            # A one-element constant keeps its value, so that conditions and trip counts computed from it are known.
            known = tensor.numel() == 1 and not trainable and tensor.dtype in _ITEM_DTYPES
            fake = _constant(tensor) if known else self._fake.from_tensor(tensor, static_shapes=True)
        return self._bind(fake, self._graph.get_attr(attribute))

    def literal(self, array: np.ndarray) -> torch.Tensor:
        """A known array as a buffer."""
        with unset_fake_temporarily():
            tensor = to_torch(np.array(array))
        return self.weight("constant", tensor, trainable=False)

    @contextmanager
    def around(self, node: Node) -> Iterator[None]:
        """Record what happens inside under the node's name; turn data-dependent control flow into UnsupportedOp."""
        outer, self._current = self._current, node.name
        try:
            with self._fake, self:
                yield
        except (DataDependentOutputException, GuardOnDataDependentSymNode) as error:
            raise UnsupportedOp(
                f"torch: {node.op} needs a value that only the run determines (node '{node.name}')"
            ) from error
        finally:
            self._current = outer

    def finish(self, outputs: tuple[Any, ...]) -> fx.GraphModule:
        """The module, without what no output needs."""
        self._graph.output(tuple(self._argument(value) for value in outputs))
        self._graph.eliminate_dead_code()
        used = {node.target for node in self._graph.nodes if node.op == "get_attr"}
        for name in [*dict(self._root.named_parameters()), *dict(self._root.named_buffers())]:
            if name not in used:
                delattr(self._root, name)
        return fx.GraphModule(self._root, self._graph)

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is torch.tensor:
            with unset_fake_temporarily():
                tensor = func(*args, **kwargs)
            return self.weight("constant", tensor, trainable=False)
        result = func(*args, **kwargs)
        if isinstance(result, torch.Tensor):
            return result if id(result) in self._nodes else self._bind(result, self._emit(func, args, kwargs))
        if isinstance(result, (tuple, list)) and any(isinstance(item, torch.Tensor) for item in result):
            node = self._emit(func, args, kwargs)
            for index, item in enumerate(result):
                self._bind(item, self._call("call_function", operator.getitem, (node, index), {}))
        return result

    def _bind(self, value: torch.Tensor, node: fx.Node) -> torch.Tensor:
        self._nodes[id(value)] = node
        self._alive.append(value)
        for dim, size in enumerate(value.shape):
            if isinstance(size, torch.SymInt):
                self._sizes.setdefault(size.node.expr, (value, dim))
        return value

    def _emit(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> fx.Node:
        arguments = self._argument(args)
        keywords = {key: self._argument(value) for key, value in kwargs.items()}
        name = getattr(func, "__name__", "")
        if name == "__get__":
            qualified = resolve_name(func) or ""
            return self._call("call_function", getattr, (arguments[0], qualified.split(".")[-2]), {})
        if name == "__getitem__":
            return self._call("call_function", operator.getitem, arguments, {})
        if name.startswith("__r") and hasattr(operator, f"__{name[3:]}"):
            return self._call("call_function", getattr(operator, f"__{name[3:]}"), arguments[::-1], {})
        if name.startswith("__") and hasattr(operator, name):
            return self._call("call_function", getattr(operator, name), arguments, {})
        method = getattr(torch.Tensor, name, None)
        if method is func or getattr(func, "__objclass__", None) is torch._C.TensorBase:
            return self._call("call_method", name, arguments, keywords)
        return self._call("call_function", func, arguments, keywords)

    def _call(self, kind: str, target: Any, args: Any, kwargs: dict[str, Any]) -> fx.Node:
        node = self._graph.create_node(kind, target, args, kwargs)
        node.meta[NODE_KEY] = self._covers.get(self._current, (self._current,))
        return node

    def _argument(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if id(value) not in self._nodes:
                raise UnsupportedOp(f"torch: a tensor of unknown origin reached node '{self._current}'")
            return self._nodes[id(value)]
        if isinstance(value, torch.SymInt):
            return self._size(value)
        if isinstance(value, (tuple, list)):
            return type(value)(self._argument(item) for item in value)
        if isinstance(value, slice):
            return slice(self._argument(value.start), self._argument(value.stop), self._argument(value.step))
        return value

    def _size(self, size: torch.SymInt) -> Any:
        known = size.node.maybe_as_int()
        if known is not None:
            return known
        if size.node.expr not in self._sizes:
            raise UnsupportedOp(f"torch: the size {size} cannot be read from a tensor (node '{self._current}')")
        tensor, dim = self._sizes[size.node.expr]
        return self._call("call_function", torch.ops.aten.sym_size.int, (self._nodes[id(tensor)], dim), {})

    def _fresh(self, name: str) -> str:
        attribute, count = name, 0
        while hasattr(self._root, attribute):
            count += 1
            attribute = f"{name}_{count}"
        return attribute


_ITEM_DTYPES = frozenset({torch.bool, torch.int32, torch.int64, torch.float32, torch.float64, torch.uint8})


def _constant(tensor: torch.Tensor) -> torch.Tensor:
    return torch.tensor(tensor.tolist(), dtype=tensor.dtype)


def _identifier(name: str) -> str:
    cleaned = re.sub(r"\W", "_", name)
    return cleaned if cleaned and not cleaned[0].isdigit() else f"_{cleaned}"
