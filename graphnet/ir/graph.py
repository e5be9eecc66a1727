"""The GraphIR types: what a graph is, in memory and (field by field) on disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

import msgspec

if TYPE_CHECKING:
    from os import PathLike

    import numpy as np
    import onnx

    from graphnet.ir.cost import Cost

FORMAT = "graphnet/1"
OPSET = 23

DType = Literal[
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
    "int4", "int8", "int16", "int32", "int64", "uint4", "uint8", "uint16", "uint32", "uint64", "bool", "string",
    "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "float4e2m1",
]  # fmt: skip
Domain = Literal[
    "vision", "transformer", "matmul", "recommender", "science", "audio", "graph", "diffusion", "synthetic", "other",
]  # fmt: skip
Tier = Literal["kernel", "micro", "block", "model", "industrial"]

Dimension = int | str
"""An integer, a symbol (`"batch"`) or an expression over symbols (`"batch*12"`, see `graphnet.ir.dims`)."""
Shape = tuple[Dimension, ...]
NonFinite = Literal["nan", "inf", "-inf"]
Scalar = bool | int | float | NonFinite


class _Struct(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    pass


class Normal(_Struct, frozen=True, kw_only=True, tag="normal", tag_field="kind"):
    """Samples of a normal distribution, clipped to [min, max] where given."""

    mean: float = 0.0
    std: float = 1.0
    min: float | None = None
    max: float | None = None


class Uniform(_Struct, frozen=True, kw_only=True, tag="uniform", tag_field="kind"):
    """Uniform samples: floats in [low, high), integers in low..high with both ends included."""

    low: int | float = 0.0
    high: int | float | str = 1.0
    """`high` may be a dimension expression for integers that index a symbolic axis (`"nodes-1"`)."""


class Constant(_Struct, frozen=True, kw_only=True, tag="constant", tag_field="kind"):
    """Every element has this value."""

    value: Scalar = 0


class Values(_Struct, frozen=True, kw_only=True, tag="values", tag_field="kind"):
    """Exact elements in row-major order, readable: for small tensors of any real dtype, bool or string."""

    data: tuple[Scalar | str, ...]


class Bytes(_Struct, frozen=True, kw_only=True, tag="bytes", tag_field="kind"):
    """Exact elements: base64 of zlib-compressed row-major little-endian bytes (one byte per 4-bit element)."""

    data: str


class File(_Struct, frozen=True, kw_only=True, tag="file", tag_field="kind"):
    """Exact elements in the sidecar `<graph file stem>.safetensors`, under the weight's own name."""


Fill = Normal | Uniform | Constant | Values | Bytes | File


class Value(_Struct, frozen=True, kw_only=True):
    """Type of an intermediate value."""

    dtype: DType
    shape: Shape


class Input(_Struct, frozen=True, kw_only=True):
    """A graph input and how to generate data for it."""

    name: str
    dtype: DType
    shape: Shape
    fill: Fill = Normal()
    stream: int | None = None
    """Random stream of the fill; by default the input's position among the inputs."""


class Weight(_Struct, frozen=True, kw_only=True):
    """A tensor that is part of the graph: a recipe (or exact elements) instead of bytes."""

    dtype: DType
    shape: tuple[int, ...]
    fill: Fill
    role: Literal["parameter", "buffer", "constant"] = "parameter"
    """Only `parameter` counts in `Graph.parameters`; `buffer` is state (running mean), `constant` a literal."""
    stream: int | None = None
    """Random stream of the fill; by default the weight's position. A rewrite pins it, so weights keep their data."""


class Body(_Struct, frozen=True, kw_only=True, tag="graph", tag_field="kind"):
    """A nested graph (branch of If, body of Loop or Scan). It also sees the names of the enclosing graphs."""

    inputs: tuple[Input, ...] = ()
    outputs: tuple[str, ...] = ()
    weights: dict[str, Weight] = {}
    nodes: tuple[Node, ...] = ()
    values: dict[str, Value] = {}


class TensorAttr(_Struct, frozen=True, kw_only=True, tag="tensor", tag_field="kind"):
    """A tensor-valued attribute (ConstantOfShape's `value`)."""

    dtype: DType
    shape: tuple[int, ...]
    fill: Constant | Values | Bytes


class FloatAttr(_Struct, frozen=True, kw_only=True, tag="float", tag_field="kind"):
    """A float attribute that JSON cannot spell."""

    value: NonFinite


Attr = int | float | str | tuple[int | float | str, ...] | TensorAttr | FloatAttr | Body


class Node(_Struct, frozen=True, kw_only=True):
    """One operator application. `inputs` and trailing optional inputs follow ONNX; a skipped input is `""`."""

    op: str
    name: str
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    attrs: dict[str, Attr] = {}
    domain: str = ""
    """Operator domain: `""` is ONNX's default domain `ai.onnx`."""


class Dim(_Struct, frozen=True, kw_only=True):
    """Legal range (both ends included) and default of a symbolic dimension."""

    min: int
    max: int
    default: int
    data_dependent: bool = False
    """True for a size that only the run determines (NonZero): it cannot be bound; `default` stands in for costs."""


class Source(_Struct, frozen=True, kw_only=True):
    """Where a graph comes from. All free text."""

    package: str = ""
    model: str = ""
    capture: str = ""
    mode: str = ""
    license: str = ""
    config: dict[str, int | float | str | bool] = {}
    max_error: float | None = None
    """Largest relative error of the captured graph against its source model at capture time."""


class Graph(_Struct, frozen=True, kw_only=True, tag=FORMAT, tag_field="format"):
    """A computation graph: data only. Build one, then `graphnet.ir.finalize` fills the derived metadata."""

    graph_id: str = ""
    name: str
    domain: Domain = "other"
    tier: Tier | None = None
    framework: str = ""
    source: Source = Source()
    input_shapes: tuple[Shape, ...] = ()
    dims: dict[str, Dim] = {}
    operator_count: int | None = None
    operator_distribution: dict[str, int] = {}
    parameters: int | None = None
    flops: int | None = None
    bytes: int | None = None
    unknown_cost: dict[str, int] = {}
    """Operators without a cost rule, by name: `flops` and `bytes` are lower bounds when this is not empty."""
    arithmetic_intensity: float | None = None
    compute_intensity: float | None = None
    stored_hash: str | None = msgspec.field(default=None, name="structure_hash")
    opset: int = msgspec.field(default_factory=lambda: OPSET)
    inputs: tuple[Input, ...] = ()
    outputs: tuple[str, ...] = ()
    weights: dict[str, Weight] = {}
    nodes: tuple[Node, ...] = ()
    values: dict[str, Value] = {}

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Graph:
        """Read and validate `x.json` or `x.json.zst`. Raises GraphFormatError, FileNotFoundError."""
        from graphnet.ir import fileio

        return fileio.load(path)

    def save(self, path: str | PathLike[str]) -> None:
        """Write atomically; `.zst` at the end of the name compresses."""
        from graphnet.ir import fileio

        fileio.save(self, path)

    @classmethod
    def from_onnx(cls, model: onnx.ModelProto | str | PathLike[str], **metadata: Any) -> Graph:
        """Import an ONNX model (upgraded to opset 23). Raises GraphFormatError."""
        from graphnet.ir import onnx_bridge

        return onnx_bridge.from_onnx(model, **metadata)

    def to_onnx(self, tensors: Mapping[str, np.ndarray] | None = None) -> onnx.ModelProto:
        """Export to ONNX; weights become initializers holding `tensors` (or `materialize(0)`)."""
        from graphnet.ir import onnx_bridge

        return onnx_bridge.to_onnx(self, tensors)

    def bind(self, **sizes: int) -> Graph:
        """A static graph: every symbolic dimension replaced by its given or default size, shape arithmetic folded."""
        from graphnet.ir import bind

        return bind.bind(self, sizes)

    def validate(self) -> None:
        """Check every invariant of the format. Raises GraphFormatError."""
        from graphnet.ir import validate

        validate.validate(self)

    def structure_hash(self) -> str:
        """64 hex digits, invariant under renaming and legal reordering (see `graphnet.ir.structure`)."""
        from graphnet.ir import structure

        return structure.structure_hash(self)

    def cost(self) -> Cost:
        """FLOPs, bytes and intensities at the default dimensions (see `graphnet.ir.cost`)."""
        from graphnet.ir import cost

        return cost.graph_cost(self)

    def materialize(self, seed: int = 0) -> dict[str, np.ndarray]:
        """All weights as arrays, deterministic in `seed`, bit for bit on any machine (see `graphnet.ir.tensors`)."""
        from graphnet.ir import tensors

        return tensors.weights(self, seed)

    def type_of(self, name: str) -> Value:
        """dtype and shape of an input, weight or value of this (outermost) graph. Raises KeyError."""
        found = self.values.get(name) or self.weights.get(name)
        if found is not None:
            return Value(dtype=found.dtype, shape=found.shape)
        for item in self.inputs:
            if item.name == name:
                return Value(dtype=item.dtype, shape=item.shape)
        raise KeyError(name)


def bodies(node: Node) -> Iterator[tuple[str, Body]]:
    """The nested graphs of a node with their attribute names."""
    return ((key, attr) for key, attr in node.attrs.items() if isinstance(attr, Body))


def walk(graph: Graph | Body) -> Iterator[Node]:
    """Every node in order, nested bodies included (a node before its bodies' nodes)."""
    for node in graph.nodes:
        yield node
        for _, body in bodies(node):
            yield from walk(body)
