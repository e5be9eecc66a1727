"""Lowering of a static graph to one FX GraphModule, and the recorder that builds it."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch._dynamo  # ShapeEnv imports it at first use: here, so that no job's compile time has it
from torch import fx, nn
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode, unset_fake_temporarily
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode, ShapeEnv
from torch.overrides import TorchFunctionMode, resolve_name

from graphnet.errors import UnsupportedOp
from graphnet.ir.graph import Graph, Node
from graphnet.lower.table import Scope
from graphnet.lower.torch import ops_all
from graphnet.lower.torch.linear import restore_linear
from graphnet.lower.torch.ops import Branch, branches, prearranged
from graphnet.lower.torch.tensors import to_numpy, to_torch, torch_dtype

NODE_KEY = "graphnet_nodes"
"""Key of `fx.Node.meta`: names of the GraphIR nodes whose work the FX node does."""

ALIGNMENT = 64
"""Bytes, of every weight: what PyTorch's own allocator gives."""
PROVENANCE = "graphnet:"
"""Prefix of `fx.Node.stack_trace`, which compilers carry along: the same names as a JSON list."""


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
    scope = Scope(ops_all.TORCH, graph, env, tensors, recorder.literal, around=recorder.around, peek=known_value)
    return recorder.finish(scope.run())


@dataclass
class _Frame:
    """One FX graph being recorded: the outermost, or a branch, whose tensors from outside become placeholders."""

    graph: fx.Graph = field(default_factory=fx.Graph)
    nodes: dict[int, fx.Node] = field(default_factory=dict)
    captured: dict[int, torch.Tensor] = field(default_factory=dict)


class Recorder(TorchFunctionMode):
    """Records every PyTorch call made while it is active into an FX graph, running it on fake tensors.

    Rules are ordinary PyTorch code: they see real shapes and dtypes. A call that returns no tensor (a shape, a dtype)
    or returns its own argument (a cast to the same dtype) leaves no trace.
    """

    def __init__(self, covers: Mapping[str, tuple[str, ...]]) -> None:
        super().__init__()
        self._covers = covers
        self._root = nn.Module()
        self._frames = [_Frame()]
        self._fake = FakeTensorMode(shape_env=ShapeEnv())
        self._alive: list[torch.Tensor] = []
        self._sizes: dict[Any, tuple[torch.Tensor, int]] = {}
        self._current = ""

    @property
    def _frame(self) -> _Frame:
        return self._frames[-1]

    def placeholder(self, name: str, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """A graph input."""
        with self._fake:
            value = torch.empty(shape, dtype=dtype)
        return self._bind(value, self._frame.graph.placeholder(_identifier(name)))

    def weight(self, name: str, tensor: torch.Tensor, *, trainable: bool) -> torch.Tensor:
        """A tensor held by the module: a parameter where it is a trainable float, else a buffer."""
        attribute = self._fresh(_identifier(name))
        if tensor.data_ptr() % ALIGNMENT:
            # Memory that came from elsewhere may be worse aligned than PyTorch's own: the same for every program.
            with unset_fake_temporarily(), torch._C.DisableTorchFunction():
                tensor = tensor.clone()
        if trainable and (tensor.is_floating_point() or tensor.is_complex()):
            self._root.register_parameter(attribute, nn.Parameter(tensor, requires_grad=False))
        else:
            self._root.register_buffer(attribute, tensor)
        with torch._C.DisableTorchFunction(), self._fake:
            # A one-element constant keeps its value, so that conditions and trip counts computed from it are known.
            known = tensor.numel() == 1 and not trainable and tensor.dtype in _ITEM_DTYPES
            fake = _constant(tensor) if known else self._fake.from_tensor(tensor, static_shapes=True)
        outermost = self._frames[0]
        return self._bind(fake, outermost.graph.get_attr(attribute), outermost)

    def literal(self, array: np.ndarray) -> torch.Tensor:
        """A known array as a buffer."""
        with unset_fake_temporarily(), torch._C.DisableTorchFunction():
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
        graph = self._frame.graph
        graph.output(tuple(self._argument(value) for value in outputs))
        graph.eliminate_dead_code()
        used = {node.target for node in graph.nodes if node.op == "get_attr"}
        for name in [*dict(self._root.named_parameters()), *dict(self._root.named_buffers())]:
            if name not in used:
                delattr(self._root, name)
        return fx.GraphModule(self._root, graph)

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is torch.tensor:
            with unset_fake_temporarily():
                tensor = func(*args, **kwargs)
            return self.weight("constant", tensor, trainable=False)
        if func is prearranged:
            return self._prearranged(*args)
        if func is branches:
            return self._branches(*args)
        result = func(*args, **kwargs)
        if isinstance(result, torch.Tensor):
            return result if self._known(result) else self._bind(result, self._emit(func, args, kwargs))
        if isinstance(result, (tuple, list)) and any(isinstance(item, torch.Tensor) for item in result):
            node = self._emit(func, args, kwargs)
            for index, item in enumerate(result):
                self._bind(item, self._call("call_function", operator.getitem, (node, index), {}))
        return result

    def _prearranged(self, arrange: Callable[[torch.Tensor], torch.Tensor], weight: torch.Tensor) -> torch.Tensor:
        node = self._frames[0].nodes.get(id(weight))
        if node is None or node.op != "get_attr":
            with self:
                return arrange(weight)
        attribute = str(node.target)
        real = getattr(self._root, attribute)
        with unset_fake_temporarily(), torch.no_grad():
            arranged = arrange(real.detach()).contiguous()
        return self.weight(attribute, arranged, trainable=isinstance(real, nn.Parameter))

    def _branches(self, condition: torch.Tensor, then: Branch, other: Branch) -> tuple[torch.Tensor, ...]:
        """Record both branches as modules of their own and choose between them with the `cond` operator."""
        recorded = [self._record(branch) for branch in (then, other)]
        types = [[(value.dtype, tuple(value.shape)) for value in values] for _, values in recorded]
        if types[0] != types[1]:
            raise UnsupportedOp(f"its branches give different types: {types[0]} and {types[1]}")
        captured = {key: value for frame, _ in recorded for key, value in frame.captured.items()}
        modules = []
        for frame, _ in recorded:
            name = self._fresh("branch")
            self._root.add_module(name, fx.GraphModule(nn.Module(), _with_placeholders(frame, list(captured))))
            modules.append(self._frame.graph.get_attr(name))
        operands = tuple(self._argument(value) for value in captured.values())
        arguments = (self._argument(condition), *modules, operands)
        node = self._call("call_function", torch.ops.higher_order.cond, arguments, {})
        results = tuple(torch.empty_like(value) for value in recorded[0][1])
        for index, result in enumerate(results):
            self._bind(result, self._call("call_function", operator.getitem, (node, index), {}))
        return results

    def _record(self, branch: Branch) -> tuple[_Frame, tuple[torch.Tensor, ...]]:
        frame = _Frame()
        self._frames.append(frame)
        try:
            values = branch()
            nodes = [self._argument(value) for value in values]
            # `cond` forbids that a branch hands on a tensor from outside.
            copies = [self._call("call_method", "clone", (n,), {}) if n.op == "placeholder" else n for n in nodes]
            frame.graph.output(tuple(copies))
        finally:
            self._frames.pop()
        return frame, values

    def _known(self, value: torch.Tensor) -> bool:
        return any(id(value) in frame.nodes for frame in self._frames)

    def _bind(self, value: torch.Tensor, node: fx.Node, frame: _Frame | None = None) -> torch.Tensor:
        (frame or self._frame).nodes[id(value)] = node
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
        if getattr(func, "__qualname__", "").partition(".")[0] in ("Tensor", "TensorBase"):
            return self._call("call_method", name, arguments, keywords)
        return self._call("call_function", func, arguments, keywords)

    def _call(self, kind: str, target: Any, args: Any, kwargs: dict[str, Any]) -> fx.Node:
        node = self._frame.graph.create_node(kind, target, args, kwargs)
        names = self._covers.get(self._current, (self._current,))
        node.meta[NODE_KEY], node.stack_trace = names, PROVENANCE + json.dumps(names)
        return node

    def _argument(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self._node(value, len(self._frames) - 1)
        if isinstance(value, torch.SymInt):
            return self._size(value)
        if isinstance(value, (tuple, list)):
            items = [self._argument(item) for item in value]
            return items if isinstance(value, list) else tuple(items)
        if isinstance(value, slice):
            return slice(self._argument(value.start), self._argument(value.stop), self._argument(value.step))
        return value

    def _node(self, value: torch.Tensor, level: int) -> fx.Node:
        """The FX node of a tensor in the frame at `level`, handed in from outside where it was made there."""
        if level < 0:
            raise UnsupportedOp(f"torch: a tensor of unknown origin reached node '{self._current}'")
        frame = self._frames[level]
        if id(value) not in frame.nodes:
            self._node(value, level - 1)
            first = next(iter(frame.graph.nodes), None)
            with frame.graph.inserting_before(first) if first is not None else nullcontext():
                frame.nodes[id(value)] = frame.graph.placeholder(f"outer_{len(frame.captured)}")
            frame.captured[id(value)] = value
        return frame.nodes[id(value)]

    def _size(self, size: torch.SymInt) -> Any:
        known = size.node.maybe_as_int()
        if known is not None:
            return known
        if size.node.expr not in self._sizes:
            raise UnsupportedOp(f"torch: the size {size} cannot be read from a tensor (node '{self._current}')")
        tensor, dim = self._sizes[size.node.expr]
        return self._call("call_function", torch.ops.aten.sym_size.int, (self._argument(tensor), dim), {})

    def _fresh(self, name: str) -> str:
        attribute, count = name, 0
        while hasattr(self._root, attribute):
            count += 1
            attribute = f"{name}_{count}"
        return attribute


def _with_placeholders(frame: _Frame, captured: list[int]) -> fx.Graph:
    """The frame's graph with exactly these captured tensors as its placeholders, in this order."""
    graph = fx.Graph()
    mapping: dict[fx.Node, fx.Node] = {}
    for index, key in enumerate(captured):
        placeholder = graph.placeholder(f"outer_{index}")
        if key in frame.captured:
            mapping[frame.nodes[key]] = placeholder
    graph.output(graph.graph_copy(frame.graph, mapping))
    return graph


_ITEM_DTYPES = frozenset({torch.bool, torch.int32, torch.int64, torch.float32, torch.float64, torch.uint8})


def known_value(value: Any) -> np.ndarray | None:
    """The array of a fake tensor that holds a one-element constant, else None."""
    constant = getattr(value, "constant", None)
    if constant is None:
        return None
    with unset_fake_temporarily(), torch._C.DisableTorchFunction():
        return to_numpy(constant)


def _constant(tensor: torch.Tensor) -> torch.Tensor:
    return torch.tensor(tensor.tolist(), dtype=tensor.dtype)


def _identifier(name: str) -> str:
    cleaned = re.sub(r"\W", "_", name)
    return cleaned if cleaned and not cleaned[0].isdigit() else f"_{cleaned}"
