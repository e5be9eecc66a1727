"""ONNX Runtime on any of its execution providers: graph optimisation level `all`, the library's default."""

from __future__ import annotations

import json
import math
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from graphnet.compilers import FLUSH_SUBNORMALS, Kernel, Target, Tensors, check_target, subnormals
from graphnet.errors import DeviceNotPresent, UnsupportedOp, UsageError
from graphnet.ir import onnx_bridge, tensors
from graphnet.ir.graph import Graph, Node, Value

if TYPE_CHECKING:
    import onnx
    import onnxruntime as ort


class Provider(NamedTuple):
    """An execution provider, and what it takes to have it."""

    name: str
    wheel: str
    memory: str = "cpu"
    """Where inputs and outputs are bound."""
    options: Mapping[str, str] = {}
    """float32 arithmetic, no reduced formats."""


PROVIDERS = {
    "cpu": Provider("CPUExecutionProvider", "onnxruntime"),
    "cuda": Provider("CUDAExecutionProvider", "onnxruntime-gpu", "cuda", {"use_tf32": "0"}),
    "tensorrt": Provider(
        "TensorrtExecutionProvider", "onnxruntime-gpu, and TensorRT", "cuda",
        {"trt_fp16_enable": "0", "trt_engine_cache_enable": "0", "trt_timing_cache_enable": "0"},
    ),
    "coreml": Provider("CoreMLExecutionProvider", "onnxruntime (on macOS)"),
    "openvino": Provider("OpenVINOExecutionProvider", "onnxruntime-openvino", options={"precision": "FP32"}),
    "directml": Provider("DmlExecutionProvider", "onnxruntime-directml (on Windows)"),
}  # fmt: skip
"""By device. Nodes that a provider does not take run on the CPU; the record lists the session's providers."""
PROFILED_RUNS = 10
_ALIGNMENT = 64
_FOUR_BIT = ("int4", "uint4")
_INLINE_LIMIT = 1 << 30


class OnnxRuntime:
    """`onnxruntime`: options `level` (disable, basic, extended, all) and `disabled_optimizers` (names, by commas)."""

    name = "onnxruntime"
    packages = ("onnxruntime", "onnx")
    devices = tuple(PROVIDERS)

    def preload(self) -> None:
        """Import only: sessions (and their thread pools) are made in the job's own process."""
        import onnxruntime  # noqa: F401

    def configure(self, target: Target) -> dict[str, Any]:
        """Check the provider; report the settings that `_session_options` will apply."""
        import onnxruntime as ort

        check_target(self.name, target, ("level", "disabled_optimizers"))
        provider = _provider(target)
        if provider.name not in ort.get_available_providers():
            here = ", ".join(ort.get_available_providers())
            raise DeviceNotPresent(
                f"onnxruntime: {provider.name} is not in this build (it has {here});"
                f" it comes with: pip install {provider.wheel}"
            )
        ort.set_default_logger_severity(4)
        return {
            "provider": provider.name,
            "threads": target.threads,
            "inter_op_threads": 1,
            "optimization_level": _level(target),
            "precision": "float32",
            "subnormals": subnormals(target, FLUSH_SUBNORMALS),
        }

    def compile(self, graph: Graph, tensors: Tensors, target: Target) -> OnnxRuntimeProgram:
        """Serialise the graph to ONNX and open a session on it (which optimises and packs the weights)."""
        return OnnxRuntimeProgram(graph, tensors, target)


class OnnxRuntimeProgram:
    """A session with inputs and outputs bound to buffers that are allocated once."""

    def __init__(self, graph: Graph, tensors: Tensors, target: Target) -> None:
        self._graph, self._tensors, self._target = graph, tensors, target
        start = time.perf_counter()
        model = onnx_bridge.to_onnx(graph, tensors)
        self.lower_s = time.perf_counter() - start
        """Seconds of the compilation that went into writing the ONNX model."""
        self._session = _open(model, _session_options(target), target)
        self.details = {"providers": ", ".join(self._session.get_providers())}
        self._device = _provider(target).memory
        self._binding = self._session.io_binding()
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, np.ndarray] = {}

    def bind(self, inputs: Tensors) -> None:
        """On the CPU use `inputs` in place and let outputs land in aligned buffers of our own; else copy to the device.

        Outputs whose shapes the run determines, and those on a device, are allocated by the library's arena.
        """
        if self._device == "cpu":
            self._inputs = {name: packed(array, self._graph.type_of(name)) for name, array in inputs.items()}
        else:
            self._inputs = {name: self._on_device(name, array) for name, array in inputs.items()}
        self._binding.clear_binding_inputs()
        self._binding.clear_binding_outputs()
        self._bind_inputs(self._session, self._binding)
        for name in self._graph.outputs:
            value = self._graph.type_of(name)
            if self._device != "cpu" or value.dtype == "string" or any(isinstance(dim, str) for dim in value.shape):
                self._binding.bind_output(name, self._device)
            else:
                self._outputs[name] = _aligned_zeros(value)
                _bind(self._binding.bind_output, name, self._outputs[name], value)

    def _on_device(self, name: str, array: np.ndarray) -> ort.OrtValue:
        import onnxruntime as ort

        element_type = onnx_bridge.tensor_type(self._graph.type_of(name).dtype)
        value = ort.OrtValue.ortvalue_from_shape_and_type(array.shape, element_type, self._device, 0)
        value.update_inplace(np.ascontiguousarray(array))
        return value

    def _bind_inputs(self, session: ort.InferenceSession, binding: ort.IOBinding) -> None:
        for item in session.get_inputs():
            if self._device == "cpu":
                _bind(binding.bind_input, item.name, self._inputs[item.name], self._graph.type_of(item.name))
            else:
                binding.bind_ortvalue_input(item.name, self._inputs[item.name])

    def run(self) -> None:
        """One inference, complete on return."""
        self._session.run_with_iobinding(self._binding)
        if self._device != "cpu":
            self._binding.synchronize_outputs()

    def outputs(self) -> Sequence[np.ndarray]:
        """Copies of the outputs in graph order."""
        fetched = dict(zip((o.name for o in self._session.get_outputs()), self._binding.get_outputs(), strict=True))
        return [
            unpacked(self._outputs[name], self._graph.type_of(name)) if name in self._outputs else fetched[name].numpy()
            for name in self._graph.outputs
        ]

    def kernels(self) -> Sequence[Kernel]:
        """Mean time of each executed node over a few runs of a second, profiling session."""
        with tempfile.TemporaryDirectory(prefix="graphnet-ort-") as folder:
            options = _session_options(self._target)
            options.enable_profiling = True
            options.profile_file_prefix = str(Path(folder, "profile"))
            options.optimized_model_filepath = str(Path(folder, "optimized.onnx"))
            model = onnx_bridge.to_onnx(self._graph, self._tensors)
            session = _open(model, options, self._target)
            optimized = _load_optimized(options.optimized_model_filepath)
            binding = session.io_binding()
            self._bind_inputs(session, binding)
            for name in self._graph.outputs:
                binding.bind_output(name, self._device)
            for _ in range(PROFILED_RUNS):
                session.run_with_iobinding(binding)
            events = json.loads(Path(session.end_profiling()).read_text())
        return _kernels(events, covered_nodes(self._graph, optimized))


def _provider(target: Target) -> Provider:
    provider = PROVIDERS.get(target.device)
    if provider is None:
        raise DeviceNotPresent(
            f"onnxruntime: no execution provider for device '{target.device}' (it knows {', '.join(PROVIDERS)})"
        )
    return provider


def _level(target: Target) -> str:
    level = str(target.options.get("level", "all"))
    if level not in ("disable", "basic", "extended", "all"):
        raise UsageError(f"onnxruntime: option level={level} is unknown; use disable, basic, extended or all")
    return level


def _session_options(target: Target) -> ort.SessionOptions:
    import onnxruntime as ort

    levels = ort.GraphOptimizationLevel
    options = ort.SessionOptions()
    options.intra_op_num_threads = target.threads
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = {
        "disable": levels.ORT_DISABLE_ALL,
        "basic": levels.ORT_ENABLE_BASIC,
        "extended": levels.ORT_ENABLE_EXTENDED,
        "all": levels.ORT_ENABLE_ALL,
    }[_level(target)]
    options.log_severity_level = 4
    options.add_session_config_entry("session.set_denormal_as_zero", str(int(FLUSH_SUBNORMALS)))
    return options


def _open(model: onnx.ModelProto, options: ort.SessionOptions, target: Target) -> ort.InferenceSession:
    import onnxruntime as ort
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    provider, disabled = _provider(target), str(target.options.get("disabled_optimizers", ""))
    arguments: dict[str, Any] = {"providers": [(provider.name, dict(provider.options))]}
    if disabled:
        arguments["disabled_optimizers"] = disabled.split(",")
    try:
        if model.ByteSize() < _INLINE_LIMIT:
            return ort.InferenceSession(model.SerializeToString(), options, **arguments)
        with tempfile.TemporaryDirectory(prefix="graphnet-ort-") as folder:
            path = Path(folder, "model.onnx")
            onnx_bridge.save_onnx(model, path)
            return ort.InferenceSession(str(path), options, **arguments)
    except (state.NotImplemented, state.InvalidGraph, state.Fail) as error:
        text = str(error).strip().splitlines()[0]
        if isinstance(error, state.Fail) and "not a registered function/op" not in text:
            raise
        raise UnsupportedOp(f"onnxruntime: {text}") from error


def _bind(bind: Any, name: str, array: np.ndarray, value: Value) -> None:
    bind(name, "cpu", 0, onnx_bridge.tensor_type(value.dtype), value.shape, array.ctypes.data)


def packed(array: np.ndarray, value: Value) -> np.ndarray:
    """The array as the library reads it: 4-bit integers two in a byte, the first one in the low half."""
    if value.dtype not in _FOUR_BIT:
        return np.ascontiguousarray(array)
    halves = array.reshape(-1).astype(np.int8).view(np.uint8) & 15
    halves = np.append(halves, np.zeros(halves.size % 2, np.uint8)).reshape(-1, 2)
    return np.ascontiguousarray(halves[:, 0] | halves[:, 1] << 4)


def unpacked(buffer: np.ndarray, value: Value) -> np.ndarray:
    """A copy of what the library wrote, with the value's shape and dtype."""
    if value.dtype not in _FOUR_BIT:
        return buffer.copy()
    shape = tuple(int(dim) for dim in value.shape)
    halves = np.stack([buffer & 15, buffer >> 4], axis=-1).reshape(-1)[: math.prod(shape)].astype(np.int8)
    signed = (halves ^ 8) - 8 if value.dtype == "int4" else halves
    return signed.astype(tensors.numpy_dtype(value.dtype)).reshape(shape)


def _aligned_zeros(value: Value) -> np.ndarray:
    """A zeroed buffer at a multiple of 64 bytes, as the inputs have."""
    if value.dtype in _FOUR_BIT:
        value = Value(dtype="uint8", shape=(-(-math.prod(map(int, value.shape)) // 2),))
    dtype, shape = tensors.numpy_dtype(value.dtype), tuple(int(dim) for dim in value.shape)
    size = math.prod(shape) * dtype.itemsize
    buffer = np.zeros(size + _ALIGNMENT, np.uint8)
    start = -buffer.ctypes.data % _ALIGNMENT
    return buffer[start : start + size].view(dtype).reshape(shape)


def _load_optimized(path: str) -> onnx.ModelProto:
    import onnx

    return onnx.load(path, load_external_data=False)


def covered_nodes(graph: Graph, optimized: onnx.ModelProto) -> dict[str, tuple[str, ...]]:
    """Optimised node name to the GraphIR nodes it does the work of.

    A fused node is anchored at the value it produces (the optimiser keeps the last fused node's output name; its
    blocked-layout twin is called `<value>_nchwc`; where a Reshape follows, that one has the name). It covers what lies
    upstream of its anchor, up to other anchors.
    """
    producer: dict[str, Node] = {out: node for node in graph.nodes for out in node.outputs if out}
    anchors = {node.name: _anchors(node, producer) for node in optimized.graph.node}
    maker = {out: node.name for node in optimized.graph.node for out in node.output}
    for node in optimized.graph.node:  # MatMul and Add as a Gemm: a Reshape after it has the name of their value
        before = maker.get(node.input[0]) if node.op_type == "Reshape" else None
        if before is not None and not anchors[before]:
            anchors[before] = anchors[node.name]
    ends = {value for values in anchors.values() for value in values}
    covered: dict[str, tuple[str, ...]] = {}
    claimed: set[str] = set()
    for node in optimized.graph.node:
        found = [name for name in _upstream(anchors[node.name], ends, producer) if name not in claimed]
        claimed.update(found)
        covered[node.name] = tuple(found)
    return covered


def _anchors(node: onnx.NodeProto, producer: Mapping[str, Node]) -> list[str]:
    values = [out for out in node.output if out in producer]
    if values:
        return values
    value = node.name.removesuffix("_nchwc")
    return [value] if value in producer else []


def _upstream(anchors: list[str], ends: set[str], producer: Mapping[str, Node]) -> list[str]:
    found: dict[str, None] = {}
    stack = list(anchors)
    while stack:
        node = producer.get(stack.pop())
        if node is None or node.name in found:
            continue
        found[node.name] = None
        stack.extend(name for name in node.inputs if name not in ends)
    return list(found)[::-1]


def _kernels(events: list[dict[str, Any]], covered: Mapping[str, tuple[str, ...]]) -> list[Kernel]:
    times: dict[str, list[float]] = defaultdict(list)
    kinds: dict[str, str] = {}
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"):
            name = event["name"].removesuffix("_kernel_time")
            times[name].append(float(event["dur"]))
            kinds[name] = event["args"]["op_name"]
    warm = {name: samples[len(samples) // PROFILED_RUNS :] or samples for name, samples in times.items()}
    return [
        Kernel(
            name=f"{kinds[name]}:{name}",
            nodes=covered.get(name, ()),
            calls=max(1, len(samples) // PROFILED_RUNS),
            total_us=float(np.mean(warm[name])) * max(1, len(samples) // PROFILED_RUNS),
        )
        for name, samples in times.items()
    ]
