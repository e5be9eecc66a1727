"""ONNX's own node tests as cases for any compiler: which are eligible, how one is prepared, run and compared."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from graphnet.compilers import Compiler, Target
from graphnet.errors import GraphFormatError
from graphnet.ir import tensors
from graphnet.ir.fold import clean
from graphnet.ir.graph import Fill, Graph, Values
from graphnet.ir.onnx_bridge import from_onnx

COMPILE_TIME_INPUTS: Mapping[str, tuple[int, ...]] = {
    "AffineGrid": (1,), "BlackmanWindow": (0,), "CenterCropPad": (1,), "Col2Im": (1, 2), "ConstantOfShape": (0,),
    "CumSum": (1,), "DFT": (1, 2), "Dropout": (1, 2), "Expand": (1,), "HammingWindow": (0,), "HannWindow": (0,),
    "Loop": (0, 1), "MaxUnpool": (2,), "MelWeightMatrix": (0, 1, 2, 3, 4), "NonMaxSuppression": (2,), "OneHot": (1,),
    "Pad": (1, 3), "Range": (0, 1, 2), "ReduceL1": (1,), "ReduceL2": (1,), "ReduceLogSum": (1,),
    "ReduceLogSumExp": (1,), "ReduceMax": (1,), "ReduceMean": (1,), "ReduceMin": (1,), "ReduceProd": (1,),
    "ReduceSum": (1,), "ReduceSumSquare": (1,), "Reshape": (1,), "Resize": (1, 2, 3), "STFT": (1, 3),
    "Slice": (1, 2, 3, 4), "Split": (1,), "Squeeze": (1,), "Tile": (1,), "TopK": (1,), "Trilu": (1,),
    "Unsqueeze": (1,), "Upsample": (1,),
}  # fmt: skip
"""Inputs that decide shapes or trip counts: a graph of the benchmark has them as constants, a node test as inputs."""
BFLOAT16_RTOL = 2**-6
"""Two units in the last place, as in ONNX's own runner."""
EXCLUDED_DOMAINS = frozenset({"ai.onnx.preview.training", "ai.onnx.ml", "ai.onnx.preview"})
EXCLUDED_OPERATORS = frozenset({
    "ConcatFromSequence", "Optional", "OptionalGetElement", "OptionalHasElement", "SequenceAt", "SequenceConstruct",
    "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength", "SequenceMap", "SplitToSequence",
    "RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit", "ImageDecoder",
})  # fmt: skip
"""Operators on sequences, optionals, strings and encoded files: GraphIR's values are tensors."""


@dataclass(frozen=True)
class Case:
    """One node test, ready to run: a static graph, its exact weights, inputs and expected outputs."""

    name: str
    graph: Graph
    inputs: Mapping[str, np.ndarray]
    outputs: tuple[np.ndarray, ...]
    rtol: float
    atol: float


@dataclass(frozen=True)
class Gap:
    """Cases that a compiler is known not to pass.

    `word`: `notimpl` (we could), `notyet` (the framework could), `never`.
    """

    pattern: str
    word: str
    reason: str


@cache
def cases() -> dict[str, Case]:
    """Every eligible case by name: tensors only, default domain, importable at the pinned opset."""
    return {case.name: case for case in _cases()}


def gaps(name: str) -> tuple[Gap, ...]:
    """The gap table of a compiler, the file `gaps_<name>.py`."""
    found: tuple[Gap, ...] = importlib.import_module(f"tests.conformance.gaps_{name}").GAPS
    return found


def gap_of(name: str, case: str) -> Gap | None:
    """The gap that a case of a compiler falls into, None if it has to pass."""
    return next((gap for gap in gaps(name) if fnmatchcase(case, gap.pattern)), None)


def _cases() -> Iterator[Case]:
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = load_model_tests(kind="node")
    for test in sorted(found, key=lambda item: item.name):
        case = _prepare(test)
        if case is not None:
            yield case


def _prepare(test: Any) -> Case | None:
    if any(item.domain in EXCLUDED_DOMAINS for item in test.model.opset_import):
        return None
    inputs, outputs = test.data_sets[0]
    if any(node.op_type in EXCLUDED_OPERATORS for node in test.model.graph.node):
        return None
    if not all(isinstance(array, np.ndarray | np.generic | onnx.TensorProto) for array in [*inputs, *outputs]):
        return None
    arrays = [_array(item) for item in [*inputs, *outputs]]
    if any(array.dtype.kind in "OUS" for array in arrays):
        return None
    named = dict(zip((item.name for item in test.model.graph.input), arrays[: len(inputs)], strict=True))
    try:
        model = _with_constants(test.model, named)
        graph = clean(from_onnx(model, parameters=(), fills=_fills(model, named)))
    except GraphFormatError:
        return None
    kept = {item.name: named[item.name] for item in graph.inputs}
    return Case(test.name, graph, kept, tuple(arrays[len(inputs) :]), test.rtol, test.atol)


def _fills(model: onnx.ModelProto, inputs: Mapping[str, np.ndarray]) -> dict[str, Fill]:
    """The integers that the test feeds: by default a graph promises indices from zero up."""
    left = {item.name for item in model.graph.input}
    return {
        name: Values(data=tuple(array.reshape(-1).tolist()))
        for name, array in inputs.items()
        if array.dtype.kind in "iu" and name in left
    }


def _array(item: np.ndarray | np.generic | onnx.TensorProto) -> np.ndarray:
    return numpy_helper.to_array(item) if isinstance(item, onnx.TensorProto) else np.asarray(item)


def _with_constants(model: onnx.ModelProto, inputs: Mapping[str, np.ndarray]) -> onnx.ModelProto:
    """The model with the inputs that decide shapes turned into initializers."""
    fixed = _deciding(model.graph) & set(inputs)
    if not fixed:
        return model
    result = onnx.ModelProto()
    result.CopyFrom(model)
    rest = [item for item in result.graph.input if item.name not in fixed]
    del result.graph.input[:]
    result.graph.input.extend(rest)
    result.graph.initializer.extend(numpy_helper.from_array(inputs[name], name) for name in sorted(fixed))
    return result


def _deciding(graph: onnx.GraphProto) -> set[str]:
    """Names from which a compile-time input is computed, without passing through Shape or Size."""
    producer = {name: node for node in graph.node for name in node.output}
    stack = [
        node.input[index]
        for node in graph.node
        for index in COMPILE_TIME_INPUTS.get(node.op_type, ())
        if index < len(node.input) and node.input[index]
    ]
    found: set[str] = set()
    while stack:
        name = stack.pop()
        if name in found:
            continue
        found.add(name)
        node = producer.get(name)
        if node is not None and node.op_type not in ("Shape", "Size"):
            stack.extend(item for item in node.input if item)
    return found


def run(case: Case, compiler: Compiler, target: Target) -> Sequence[np.ndarray]:
    """The compiler's outputs for a case; the oracle's, which are float64, rounded to the dtypes of the graph."""
    program = compiler.compile(case.graph, tensors.weights(case.graph), target)
    program.bind(dict(case.inputs))
    program.run()
    results = program.outputs()
    if compiler.name != "reference":
        return results
    dtypes = [tensors.numpy_dtype(case.graph.type_of(name).dtype) for name in case.graph.outputs]
    return [
        result.astype(dtype) if result.dtype == np.float64 else result
        for result, dtype in zip(results, dtypes, strict=True)
    ]


def check(case: Case, results: Sequence[np.ndarray]) -> None:
    """Raise AssertionError unless values (at the test's tolerance), shapes and dtypes equal the expected ones."""
    assert len(results) == len(case.outputs), f"{len(results)} outputs, {len(case.outputs)} expected"
    for name, got, expected in zip(case.graph.outputs, results, case.outputs, strict=True):
        assert got.dtype == expected.dtype, f"{name}: dtype {got.dtype}, expected {expected.dtype}"
        assert got.shape == expected.shape, f"{name}: shape {got.shape}, expected {expected.shape}"
        value = case.graph.type_of(name)
        stated = tensors.numpy_dtype(value.dtype)
        assert stated == expected.dtype, f"{name}: the graph states {stated}"
        sizes = [size for size in value.shape if isinstance(size, int)]
        assert len(sizes) < len(value.shape) or value.shape == expected.shape, f"{name}: the graph states {value.shape}"
        if expected.dtype.kind in "biu":
            np.testing.assert_array_equal(got, expected, err_msg=name)
        else:
            rtol = max(case.rtol, BFLOAT16_RTOL) if expected.dtype.name == "bfloat16" else case.rtol
            np.testing.assert_allclose(_wide(got), _wide(expected), rtol=rtol, atol=case.atol, err_msg=name)


def _wide(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind in "fc":
        return array
    return array.astype(np.float64)
