"""GraphIR to MLIR for IREE: composites that it lacks are decomposed, then its ONNX importer runs, weights outside."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from iree.compiler.extras import onnx_importer
from iree.compiler.ir import Context, MLIRError, Value
from iree.compiler.tools.import_onnx.importer_externalization_overrides import IREENodeImporter, ParamData

from graphnet.compilers import Tensors
from graphnet.compilers.iree.mend import mend
from graphnet.errors import UnsupportedOp
from graphnet.ir import onnx_bridge
from graphnet.ir import tensors as tensors_
from graphnet.ir.graph import Graph
from graphnet.rewrite.decompose import decompose, decomposed

FUNCTION = "main"
SCOPE = "model"
DECOMPOSED = frozenset({
    "Attention", "NegativeLogLikelihoodLoss", "RMSNormalization", "RotaryEmbedding",
    "SoftmaxCrossEntropyLoss",
})  # fmt: skip
"""Composite operators that torch-mlir, IREE's ONNX front end, has no lowering for."""


class Imported(NamedTuple):
    """A graph in MLIR."""

    module: bytes
    """MLIR bytecode in the `torch` dialect; every operation's location is the name of its node."""
    parameters: Mapping[str, str]
    """Weight by the symbol of its parameter."""
    operators: Mapping[str, str]
    """Operator by node name, decomposed nodes included."""
    details: dict[str, Any]


def import_graph(graph: Graph, tensors: Tensors) -> Imported:
    """Literals become constants of the module, parameters and buffers its parameters. Raises UnsupportedOp."""
    written, mended = mend(decompose(graph, DECOMPOSED))
    model = onnx_bridge.to_onnx(written, tensors_.completed(written, tensors))
    model.graph.name = FUNCTION
    info = onnx_importer.ModelInfo(model)
    module = info.create_module(context=Context()).operation
    try:
        importer = _Importer.define_function(info.main_graph, module, ParamData(None, 0, SCOPE, "", "", None))
        importer.external = {name for name, weight in written.weights.items() if weight.role != "constant"}
        importer.import_all()
        module.verify()
    except (onnx_importer.OnnxImportError, MLIRError) as error:
        raise UnsupportedOp(f"iree: the ONNX importer says: {' '.join(str(error).split())[:300]}") from error
    buffer = io.BytesIO()
    module.write_bytecode(buffer)
    return Imported(
        module=buffer.getvalue(),
        parameters={symbol: name for name, symbol in importer.globals},
        operators={node.name: f"{node.domain or 'ai.onnx'}::{node.op}" for node in written.nodes},
        details={"decomposed": decomposed(graph, DECOMPOSED), "rewritten": mended},
    )


class _Importer(IREENodeImporter):  # type: ignore[misc]
    """IREE's importer, with the role of a weight, not its size, deciding what is a parameter."""

    external: set[str]

    @classmethod
    def define_function(cls, *arguments: Any, **named: Any) -> _Importer:
        importer: _Importer = super().define_function(*arguments, **named)
        importer.__class__ = cls
        return importer

    def import_initializer(self, initializer: Any, extern_name: str | None = None) -> Value:
        if (extern_name or initializer.name) in self.external:
            return super().import_initializer(initializer, extern_name)
        return onnx_importer.NodeImporter.import_initializer(self, initializer, extern_name)


def sized(array: np.ndarray) -> np.ndarray:
    """As the runtime takes it: C-contiguous."""
    return np.ascontiguousarray(array).reshape(array.shape)
