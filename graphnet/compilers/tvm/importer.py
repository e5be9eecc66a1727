"""From a GraphIR graph to a Relax module: what TVM's importer lacks is written out, and bindings tell their node."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import msgspec
import numpy as np
import onnx.defs
import tvm
from tvm import relax
from tvm.relax.frontend.onnx import onnx_frontend

from graphnet.compilers.tvm.mend import beyond_importer, mend
from graphnet.errors import UnsupportedOp
from graphnet.ir import onnx_bridge
from graphnet.ir import tensors as tensors_
from graphnet.ir.graph import OPSET, Graph
from graphnet.rewrite.decompose import decompose, decomposed, origin

BROKEN = frozenset({"Attention"})
"""Operators that the importer has, but not as opset 23 defines them."""


class Imported(NamedTuple):
    """A module of operators."""

    module: tvm.IRModule
    nodes: Mapping[str, str]
    """Name of a binding of `main` to the GraphIR node that it computes."""
    decomposed: str
    """Operators that were written out: `Attention, Celu`."""


@cache
def composites() -> frozenset[str]:
    """Operators to write out in primitives: those with a function body that the importer lacks or gets wrong."""
    known = onnx_frontend._get_convert_map()
    schemas = (schema for schema in onnx.defs.get_all_schemas() if not schema.domain)
    bodies = {found.name for found in schemas if found.has_function or found.has_context_dependent_function}  # type: ignore[attr-defined]
    return frozenset(bodies - set(known)) | BROKEN


def import_graph(graph: Graph, tensors: Mapping[str, np.ndarray]) -> Imported:
    """Weights become constants of the module, inputs its parameters. Raises UnsupportedOp."""
    named = beyond_importer(graph)
    primitive = decompose(graph, composites(), named)
    primitive = mend(primitive, tensors_.completed(primitive, tensors))
    primitive = msgspec.structs.replace(primitive, name="main")
    _check_operators(primitive)
    model = onnx_bridge.to_onnx(primitive, tensors_.completed(primitive, tensors))
    importer = _Importer()
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = importer.from_onnx(model.graph, OPSET)
    module, names = _labelled(module, importer.nodes)
    return Imported(module, names, decomposed(graph, composites(), named))


def _check_operators(graph: Graph) -> None:
    known = onnx_frontend._get_convert_map()
    for node in graph.nodes:
        if node.domain or (node.op not in known and node.op != "If"):
            raise UnsupportedOp(
                f"tvm: the importer has no {node.domain or 'ai.onnx'}::{node.op} (node '{origin(node.name)}')"
            )


class _Importer(onnx_frontend.ONNXGraphImporter):  # type: ignore[misc]
    """TVM's importer; it binds the result of each node at once, and remembers which node it is."""

    def __init__(self) -> None:
        super().__init__({}, None, keep_params_in_input=False, sanitize=False)
        self.nodes: dict[Any, str] = {}

    def _convert_operator(self, op_name: str, inputs: Any, attrs: dict[str, Any], opset: int) -> Any:
        node = attrs["tvm_custom"]["name"]
        try:
            result = super()._convert_operator(op_name, inputs, attrs, opset)
        except (NotImplementedError, tvm.error.OpNotImplemented) as error:
            text = " ".join(str(error).split())
            raise UnsupportedOp(f"tvm: {text or 'not implemented'} ({op_name}, node '{origin(node)}')") from error
        if isinstance(result, relax.Tuple):
            return relax.Tuple([self._bound(item, node) for item in result.fields])
        return self._bound(result, node)

    def _bound(self, result: Any, node: str) -> Any:
        if isinstance(result, relax.Call) and isinstance(result.ty, relax.TensorType):
            result = self.bb.emit(result)
        if isinstance(result, relax.Var):
            self.nodes.setdefault(result, origin(node))
        return result


def _labelled(module: tvm.IRModule, nodes: Mapping[Any, str]) -> tuple[tvm.IRModule, dict[str, str]]:
    """The module with names of bindings that no pass makes up by itself, and the node of each."""
    labeller = _Labeller(nodes)
    module["main"] = labeller.visit_expr(module["main"])
    return module, labeller.names


@relax.expr_functor.mutator
class _Labeller(relax.PyExprMutator):  # type: ignore[misc]
    def __init__(self, nodes: Mapping[Any, str]) -> None:
        super().__init__()
        self._nodes = nodes
        self.names: dict[str, str] = {}

    def visit_var_binding_(self, binding: relax.VarBinding) -> None:
        node = self._nodes.get(binding.var)
        if node is None or not isinstance(binding.var, relax.DataflowVar):
            super().visit_var_binding_(binding)
            return
        value = self.visit_expr(binding.value)
        label = f"node{len(self.names)}_"
        self.names[label] = node
        self.set_var_remap(binding.var, self.builder_.emit(value, name_hint=label))
