"""OpenVINO on the CPU or an Intel GPU, held to float32: by itself it takes bfloat16 where the machine has it."""

from __future__ import annotations

import importlib
import math
import re
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx

from graphnet.compilers import FLUSH_SUBNORMALS, Kernel, Target, Tensors, check_target, subnormals
from graphnet.compilers.base import DEFAULT_PASS
from graphnet.compilers.openvino.profile import covered_nodes, kernel_times
from graphnet.errors import DeviceNotPresent, UnsupportedOp, UsageError
from graphnet.ir import onnx_bridge
from graphnet.ir import tensors as ir_tensors
from graphnet.ir.graph import Graph, Node, walk
from graphnet.rewrite.decompose import decompose

_CONVERTER = "openvino.tools.ovc"


@contextmanager
def _without_converter() -> Iterator[None]:
    """The package imports its model converter if it can, and that reports the import to its maker from a thread."""
    if _CONVERTER in sys.modules:
        yield
        return
    sys.modules[_CONVERTER] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[_CONVERTER]


with _without_converter():
    import openvino as ov
    from openvino import _offline_transformations as offline
    from openvino import passes as ov_passes

DEVICES = {"cpu": "CPU", "intel-gpu": "GPU"}
"""OpenVINO's names of the devices."""
_CONFIG = "config."
MEMORY_STATISTICS = "GPU_MEMORY_STATISTICS"
_OURS = ("INFERENCE_NUM_THREADS", "INFERENCE_PRECISION_HINT", "CPU_DENORMALS_OPTIMIZATION", "CACHE_DIR")
"""Properties that the target decides."""
_PACKED = ("int4", "uint4", "float4e2m1")
_INLINE_LIMIT = 1 << 30
_NO_RULE = re.compile(r"No conversion rule found for operations: (?P<operator>[^\s,]+?)(?:-\d+)?(?:[\s,]|$)")
_NO_TYPE = re.compile(r"Unsupported data type (\w+)")
_FAILED_RULE = re.compile(r"-- (?P<operator>[\w.]+)-\d+ with a message: (?P<reason>.*)")


def _run_pass(name: str) -> Callable[[ov.Model], object]:
    def run(model: ov.Model) -> object:
        manager = ov_passes.Manager()
        manager.register_pass(getattr(ov_passes, name)())
        return manager.run_passes(model)

    return run


PASSES: Mapping[str, Callable[[ov.Model], object]] = {
    **{name: _run_pass(name) for name in ("ConstantFolding", "ConvertFP32ToFP16")},
    "apply_moc_transformations": lambda model: offline.apply_moc_transformations(model, cf=True),
    "apply_moc_legacy_transformations": lambda model: offline.apply_moc_legacy_transformations(model, []),
    **{
        name: getattr(offline, name)
        for name in (
            "apply_pruning_transformation", "compress_model_transformation",
            "compress_quantize_weights_transformation", "convert_sequence_to_tensor_iterator_transformation",
        )
    },
}  # fmt: skip
"""The library's transformations that take a whole model and nothing else."""
_HALVING = ("ConvertFP32ToFP16", "compress_model_transformation")


class OpenVino:
    """`openvino`: options `config.NAME` (any property of the device that can be set)."""

    name = "openvino"
    packages = ("openvino", "onnx")
    devices = tuple(DEVICES)
    cache_by_default = False

    def __init__(self) -> None:
        self._cache: Path | None = None

    def preload(self) -> None:
        """Importing this module imported the library; plugins and their threads come in the child."""

    def use_cache(self, folder: Path) -> None:
        """The cache of compiled models (`CACHE_DIR`)."""
        self._cache = folder

    def configure(self, target: Target) -> dict[str, Any]:
        """Check device, properties and passes; report what `_properties` asks for.

        Raises DeviceNotPresent, UsageError.
        """
        check_target(self.name, target, (_CONFIG,), passes=PASSES)
        _check_passes(target)
        core, device = ov.Core(), _device(target)
        if not any(found.partition(".")[0] == device for found in core.available_devices):
            raise DeviceNotPresent(
                f"openvino: device '{target.device}' is not on this machine (OpenVINO sees"
                f" {', '.join(core.available_devices)}); it takes an Intel GPU and its OpenCL driver (intel-opencl-icd)"
            )
        _check_properties(core, device, target)
        return {
            "device": str(core.get_property(device, "FULL_DEVICE_NAME")),
            "threads": target.threads,
            "precision": _precision(target),
            "subnormals": subnormals(target, FLUSH_SUBNORMALS),
            "performance_hint": "LATENCY",
            "model_cache": self._cache is not None,
        }

    def compile(self, graph: Graph, tensors: Tensors, target: Target) -> OpenVinoProgram:
        """Write the graph as ONNX, import and compile it. Raises UnsupportedOp, UsageError."""
        return OpenVinoProgram(graph, tensors, target, {"CACHE_DIR": str(self._cache)} if self._cache else {})


class OpenVinoProgram:
    """An inference request that reads the caller's buffers and writes to those that it allocated when it was made."""

    def __init__(self, graph: Graph, tensors: Tensors, target: Target, extra: Mapping[str, Any]) -> None:
        self._graph, self._target = graph, target
        start = time.perf_counter()
        written_out = _misread(graph)
        self._written = _with_axis_attributes(decompose(graph, written_out), tensors)
        model = _onnx(self._written, tensors)
        self.lower_s = time.perf_counter() - start
        """Seconds of the compilation that went into writing the ONNX model."""
        self._core = ov.Core()
        self._imported = _read(self._core, model, self._written)
        for change in _passes(target):
            change(self._imported)
        self._compiled = _compile(self._core, self._imported, target, self._written, extra)
        self.details = _effective(self._compiled)
        self.details |= {"decomposed": ", ".join(written_out)} if written_out else {}
        self.details |= {"axis_as_attribute": "DFT"} if any(node.op == "DFT" for node in graph.nodes) else {}
        self._request = self._compiled.create_infer_request()
        self._inputs: dict[str, np.ndarray] = {}

    def bind(self, inputs: Tensors) -> None:
        """Use `inputs` in place (but for numbers of 4 bits, which are packed)."""
        self._inputs = {item.name: _bytes(inputs[item.name], item.dtype) for item in self._graph.inputs}
        self._bind(self._request)

    def _bind(self, request: ov.InferRequest) -> None:
        ports = self._compiled.inputs
        for index, (port, name) in enumerate(zip(ports, _input_names(ports, self._inputs), strict=True)):
            request.set_input_tensor(index, ov.Tensor(self._inputs[name], port.shape, port.element_type))

    def run(self) -> None:
        """One inference, complete on return."""
        self._request.infer(share_outputs=True)

    def outputs(self) -> Sequence[np.ndarray]:
        """Copies of the outputs in graph order."""
        return [
            _array(self._request.get_output_tensor(index), self._graph.type_of(name).dtype)
            for index, name in enumerate(self._graph.outputs)
        ]

    def memory(self) -> Mapping[str, int]:
        """What the plugin says of a GPU's memory, by kind; the one for CPUs says nothing."""
        device = _device(self._target)
        if MEMORY_STATISTICS not in self._core.get_property(device, "SUPPORTED_PROPERTIES"):
            return {}
        return {str(kind): int(size) for kind, size in self._core.get_property(device, MEMORY_STATISTICS).items()}

    def kernels(self) -> Sequence[Kernel]:
        """Mean time of each executed node over a few runs of a second compilation, which counts."""
        compiled = _compile(self._core, self._imported, self._target, self._written, {"PERF_COUNT": True})
        request = compiled.create_infer_request()
        self._bind(request)
        request.infer(share_outputs=True)
        covered = covered_nodes(self._written, self._imported, compiled.get_runtime_model())
        return kernel_times(lambda: request.infer(share_outputs=True), request.get_profiling_info, covered)


def _device(target: Target) -> str:
    if target.device not in DEVICES:
        raise DeviceNotPresent(f"openvino: no device '{target.device}' (it knows {', '.join(DEVICES)})")
    return DEVICES[target.device]


def _precision(target: Target) -> str:
    return "f32" if target.precision == "float32" else "the library's choice"


def _properties(target: Target) -> dict[str, Any]:
    """What the target asks of the device, and the options' properties over it."""
    found: dict[str, Any] = {"PERFORMANCE_HINT": "LATENCY"}
    if target.precision == "float32":  # the second would turn activations into int8 beside compressed weights
        found |= {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0}
    if _device(target) == "CPU":
        found |= {"INFERENCE_NUM_THREADS": target.threads, "CPU_DENORMALS_OPTIMIZATION": FLUSH_SUBNORMALS}
    given = {key.removeprefix(_CONFIG): value for key, value in target.options.items() if key.startswith(_CONFIG)}
    return found | given


def _check_properties(core: ov.Core, device: str, target: Target) -> None:
    """Raises UsageError for a property that cannot be set, has no such value, or is the target's to decide."""
    supported = core.get_property(device, "SUPPORTED_PROPERTIES")
    writable = sorted(name for name, access in supported.items() if access == "RW" and name not in _OURS)
    for key in target.options:
        name = key.removeprefix(_CONFIG)
        if name in _OURS:
            raise UsageError(f"openvino: {name} is set from threads and precision of the run; leave out {key}")
        if name not in writable:
            raise UsageError(f"openvino: device {device} has no property '{name}'; known: {', '.join(writable)}")
        try:
            core.set_property(device, {name: target.options[key]})
        except (RuntimeError, TypeError) as error:
            raise UsageError(f"openvino: option {key}={target.options[key]}: {_reason(error)}") from error


def _check_passes(target: Target) -> None:
    names = list(target.passes)
    if DEFAULT_PASS in names and names[-1] != DEFAULT_PASS:
        raise UsageError(
            f"openvino: pass '{names[-1]}' cannot follow '{DEFAULT_PASS}': its own pipeline runs inside compile_model,"
            " after all others"
        )
    for name in _HALVING:
        if name in names and target.precision == "float32":
            raise UsageError(f"openvino: pass '{name}' stores float32 as float16, which precision float32 forbids")
    _passes(target)


def _passes(target: Target) -> list[Callable[[ov.Model], object]]:
    return [PASSES.get(name) or _function(name) for name in target.passes if name != DEFAULT_PASS]


def _function(path: str) -> Callable[[ov.Model], object]:
    module, _, name = path.partition(":")
    try:
        found: Callable[[ov.Model], object] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"openvino: pass '{path}' is no function that can be imported: {error}") from error
    return found


def _misread(graph: Graph) -> tuple[str, ...]:
    """Composite operators to write out: the importer lets queries of a causal Attention with a cache see too little."""
    past = 4
    causal = any(
        node.op == "Attention" and node.attrs.get("is_causal") and any(node.inputs[past:]) for node in graph.nodes
    )
    return ("Attention",) if causal else ()


def _with_axis_attributes(graph: Graph, tensors: Tensors) -> Graph:
    """The importer reads DFT as opset 17 has it: its axis is an attribute, and not an input as from opset 20 on."""

    def changed(node: Node) -> Node:
        known = len(node.inputs) < 3 or not node.inputs[2] or node.inputs[2] in tensors
        if node.op != "DFT" or node.domain or not known:
            return node
        rank = len(graph.type_of(node.inputs[0]).shape)
        axis = int(tensors[node.inputs[2]]) if len(node.inputs) > 2 and node.inputs[2] else -2
        return msgspec.structs.replace(node, inputs=node.inputs[:2], attrs={**node.attrs, "axis": axis % rank})

    return msgspec.structs.replace(graph, nodes=tuple(map(changed, graph.nodes)))


def _onnx(graph: Graph, tensors: Tensors) -> onnx.ModelProto:
    return onnx_bridge.to_onnx(graph, ir_tensors.completed(graph, tensors))


def _read(core: ov.Core, model: onnx.ModelProto, graph: Graph) -> ov.Model:
    try:
        if model.ByteSize() < _INLINE_LIMIT:
            return core.read_model(model.SerializeToString(), b"")
        with tempfile.TemporaryDirectory(prefix="graphnet-openvino-") as folder:
            path = Path(folder, "model.onnx")
            onnx_bridge.save_onnx(model, path)
            return core.read_model(path, config={"ENABLE_MMAP": False})
    except RuntimeError as error:
        raise _unsupported(error, graph) or error from error


def _compile(
    core: ov.Core, model: ov.Model, target: Target, graph: Graph, extra: Mapping[str, Any] | None = None
) -> ov.CompiledModel:
    try:
        return core.compile_model(model, _device(target), {**_properties(target), **(extra or {})})
    except RuntimeError as error:
        raise _unsupported(error, graph) or error from error


def _unsupported(error: RuntimeError, graph: Graph) -> UnsupportedOp | None:
    """The error as UnsupportedOp where that is what it says, None otherwise."""
    text = " ".join(str(error).split())
    found = _NO_RULE.search(text) or _FAILED_RULE.search(text)
    if found is None:
        kind = _NO_TYPE.search(text)
        return UnsupportedOp(f"openvino: no data type {kind.group(1)}") if kind else None
    operator, reason = found.group("operator"), found.groupdict().get("reason", "")
    domain, _, name = operator.rpartition(".")
    node = next((node.name for node in walk(graph) if node.op == name and node.domain == domain), "")
    where = f" (node '{node}')" if node else ""
    return UnsupportedOp(
        f"openvino: no lowering for {domain or 'ai.onnx'}::{name}{where}{': ' if reason else ''}{reason[:500]}"
    )


def _reason(error: Exception) -> str:
    """The last line of the library's many."""
    return [line for line in str(error).splitlines() if line.strip()][-1].strip()


def _effective(compiled: ov.CompiledModel) -> dict[str, Any]:
    """Properties of the compiled model, read back."""
    wanted = {
        "precision": "INFERENCE_PRECISION_HINT", "threads": "INFERENCE_NUM_THREADS", "streams": "NUM_STREAMS",
        "pinned": "ENABLE_CPU_PINNING", "subnormals": "CPU_DENORMALS_OPTIMIZATION",
    }  # fmt: skip
    supported = compiled.get_property("SUPPORTED_PROPERTIES")
    found = {key: compiled.get_property(name) for key, name in wanted.items() if name in supported}
    if "subnormals" in found:
        found["subnormals"] = "flushed" if found["subnormals"] else "kept"
    return {key: value.get_type_name() if isinstance(value, ov.Type) else value for key, value in found.items()}


def _input_names(ports: Sequence[Any], inputs: Collection[str]) -> list[str]:
    """Name of the graph's input for each port: the importer drops inputs that it does not need.

    An input that an output is a copy of may have got that one's name: such ports take the names left over, in order.
    """
    known = [
        next((name for name in (port.node.get_friendly_name(), *port.names) if name in inputs), "") for port in ports
    ]
    left = iter([name for name in inputs if name not in known])
    return [name or next(left) for name in known]


def _bytes(array: np.ndarray, dtype: str) -> np.ndarray:
    """The memory of a contiguous, writable array; numbers of 4 bits two to a byte, the first in the low half."""
    flat: np.ndarray = np.require(array, requirements=("C", "W")).reshape(-1).view(np.uint8)
    if dtype not in _PACKED:
        return flat
    halves = np.append(flat & 15, np.zeros(flat.size % 2, np.uint8))
    packed: np.ndarray = halves[::2] | halves[1::2] << 4
    return packed


def _array(tensor: ov.Tensor, dtype: str) -> np.ndarray:
    """A copy, of the graph's dtype: the library shows formats that numpy lacks as other ones."""
    array: np.ndarray = np.array(tensor.data)
    shape = tuple(tensor.shape)
    if dtype in _PACKED:
        packed = array.view(np.uint8)
        array = np.stack([packed & 15, packed >> 4], -1).reshape(-1)[: math.prod(shape)]
        if dtype == "int4":
            array = (array ^ 8).astype(np.int8) - 8
    return np.reshape(array.view(ir_tensors.numpy_dtype(dtype)), shape)
