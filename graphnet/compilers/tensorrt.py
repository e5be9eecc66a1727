"""TensorRT on an NVIDIA GPU: the ONNX model is parsed, built to an engine anew each time, and run on one stream."""

from __future__ import annotations

import importlib
import json
import math
import re
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from graphnet.compilers import Kernel, Target, Tensors, check_target, subnormals
from graphnet.errors import DeviceNotPresent, UnsupportedOp, UsageError
from graphnet.ir import onnx_bridge
from graphnet.ir import tensors as ir_tensors
from graphnet.ir.graph import Graph

TYPES = {
    "float32": "FLOAT", "float16": "HALF", "bfloat16": "BF16", "int64": "INT64", "int32": "INT32", "int8": "INT8",
    "uint8": "UINT8", "bool": "BOOL", "float8e4m3fn": "FP8",
}  # fmt: skip
"""Types that inputs and outputs of an engine can have, by the graph's names."""
LEVELS = range(6)
PROFILED_RUNS = 10
_INLINE_LIMIT = 1 << 30
_ONNX_LAYER = re.compile(r"\[ONNX Layer: ([^\]]*)\]")


class TensorRt:
    """`tensorrt`: option `optimization_level` (0 to 5, how long the builder searches; the library's default is 3)."""

    name = "tensorrt"
    packages = ("tensorrt", "cuda-bindings", "onnx")
    devices = ("cuda",)

    def preload(self) -> None:
        """Import only: a CUDA context does not survive a fork, so the device is first touched in the child."""
        importlib.import_module("tensorrt")

    def configure(self, target: Target) -> dict[str, Any]:
        """Check the device; report the settings that `_build` will apply. Raises DeviceNotPresent, UsageError."""
        check_target(self.name, target, ("optimization_level",))
        level = _level(target)
        if target.device not in self.devices:
            raise DeviceNotPresent(f"tensorrt: no device '{target.device}' (it knows cuda: add --backend cuda)")
        return {
            "device": Cuda().name(),
            "builder_threads": target.threads,
            "precision": "float32" if target.precision == "float32" else "float32 or TF32",
            "optimization_level": level,
            "timing_cache": False,
            "subnormals": subnormals(target, flushed=False),
        }

    def compile(self, graph: Graph, tensors: Tensors, target: Target) -> TensorRtProgram:
        """Write the graph as ONNX, parse it, build the engine. Raises UnsupportedOp, DeviceNotPresent."""
        check_types(graph)
        start = time.perf_counter()
        model = onnx_bridge.to_onnx(graph, tensors)
        spent = time.perf_counter() - start
        trt = importlib.import_module("tensorrt")
        logger = trt.Logger(trt.Logger.ERROR)
        engine = _build(trt, logger, model, target)
        return TensorRtProgram(graph, [info.name for info in model.graph.output], trt, logger, engine, spent)


class TensorRtProgram:
    """An execution context whose inputs and outputs are buffers on the device, allocated once."""

    def __init__(self, graph: Graph, names: Sequence[str], trt: Any, logger: Any, engine: Any, lower_s: float) -> None:
        self._graph, self._names, self._trt, self._logger, self._engine = graph, names, trt, logger, engine
        self.lower_s = lower_s
        """Seconds of the compilation that went into writing the ONNX model."""
        self.details = {"tensorrt_layers": int(engine.num_layers)}
        self._cuda = Cuda()
        self._stream = self._cuda.stream()
        self._context = engine.create_execution_context()
        self._addresses: dict[str, int] = {}
        self._allocators: dict[str, Any] = {}
        for item in graph.inputs:
            self._place(item.name, _size(item.shape, item.dtype))
        for name, value in zip(names, map(graph.type_of, graph.outputs), strict=True):
            if any(isinstance(dim, str) for dim in value.shape):
                self._allocators[name] = _allocator(trt, self._cuda)
                self._context.set_output_allocator(name, self._allocators[name])
            else:
                self._place(name, _size(value.shape, value.dtype))

    def _place(self, name: str, size: int) -> None:
        self._addresses[name] = self._cuda.allocate(size)
        self._context.set_tensor_address(name, self._addresses[name])

    def bind(self, inputs: Tensors) -> None:
        """Copy the inputs to the device."""
        for item in self._graph.inputs:
            self._cuda.copy_in(self._addresses[item.name], np.ascontiguousarray(inputs[item.name]))

    def run(self) -> None:
        """One inference, complete on return."""
        if not self._context.execute_async_v3(self._stream):
            raise RuntimeError("tensorrt: execution failed (its message is in the output of the job)")
        self._cuda.synchronize(self._stream)

    def outputs(self) -> Sequence[np.ndarray]:
        """Copies of the outputs in graph order."""
        return [
            self._fetch(name, self._graph.type_of(own).dtype)
            for name, own in zip(self._names, self._graph.outputs, strict=True)
        ]

    def _fetch(self, name: str, dtype: str) -> np.ndarray:
        if name in self._allocators:
            shape, address = self._allocators[name].shape, self._allocators[name].address
        else:
            shape, address = tuple(self._context.get_tensor_shape(name)), self._addresses[name]
        array = np.empty(shape, ir_tensors.numpy_dtype(dtype))
        self._cuda.copy_out(array, address)
        return array

    def kernels(self) -> Sequence[Kernel]:
        """Mean time of each layer of the engine over a few runs with a profiler on the context."""
        profiler = _profiler(self._trt)
        self.run()
        self._context.profiler = profiler
        try:
            for _ in range(PROFILED_RUNS):
                self.run()
        finally:
            self._context.profiler = None
        inspector = self._engine.create_engine_inspector()
        described = inspector.get_engine_information(self._trt.LayerInformationFormat.JSON)
        return layer_kernels(profiler.milliseconds, covered_nodes(described))


class Cuda:
    """The few calls of the CUDA runtime that are needed, with errors raised. Raises DeviceNotPresent when made."""

    def __init__(self) -> None:
        try:
            self._runtime: Any = importlib.import_module("cuda.bindings.runtime")
            count = self._call("cudaGetDeviceCount")
        except (ImportError, RuntimeError) as error:
            raise DeviceNotPresent(f"tensorrt: no CUDA device on this machine ({error})") from error
        if not count:
            raise DeviceNotPresent("tensorrt: no CUDA device on this machine; it takes an NVIDIA GPU and its driver")

    def _call(self, function: str, *arguments: Any) -> Any:
        status, *results = getattr(self._runtime, function)(*arguments)
        if int(status) != 0:
            raise RuntimeError(f"{function}: {getattr(status, 'name', status)}")
        return results[0] if results else None

    def name(self) -> str:
        """Name of the first device."""
        return str(self._call("cudaGetDeviceProperties", 0).name.decode())

    def stream(self) -> int:
        """A new stream."""
        return int(self._call("cudaStreamCreate"))

    def synchronize(self, stream: int) -> None:
        """Wait until the stream's work is done."""
        self._call("cudaStreamSynchronize", stream)

    def allocate(self, size: int) -> int:
        """Address of `size` bytes on the device."""
        return int(self._call("cudaMalloc", max(1, size)))

    def free(self, address: int) -> None:
        """Give memory back."""
        self._call("cudaFree", address)

    def copy_in(self, address: int, array: np.ndarray) -> None:
        """Host to device, complete on return."""
        self._call("cudaMemcpy", address, array.ctypes.data, array.nbytes, self._kind("cudaMemcpyHostToDevice"))

    def copy_out(self, array: np.ndarray, address: int) -> None:
        """Device to host, complete on return."""
        self._call("cudaMemcpy", array.ctypes.data, address, array.nbytes, self._kind("cudaMemcpyDeviceToHost"))

    def _kind(self, name: str) -> Any:
        return getattr(self._runtime.cudaMemcpyKind, name)


def check_types(graph: Graph) -> None:
    """Raises UnsupportedOp for an input or output of a type that an engine cannot have."""
    values = {item.name: item.dtype for item in graph.inputs}
    values |= {name: graph.type_of(name).dtype for name in graph.outputs}
    for name, dtype in values.items():
        if dtype not in TYPES:
            raise UnsupportedOp(
                f"tensorrt: no inputs or outputs of type {dtype} ('{name}'); it has {', '.join(sorted(TYPES))}"
            )


def parse_error(errors: Sequence[Any]) -> UnsupportedOp:
    """The parser's complaints as one error that names operator and node of the first."""
    first = errors[0] if errors else None
    if first is None:
        return UnsupportedOp("tensorrt: its ONNX parser refused the model without a reason")
    operator, node = first.node_operator(), first.node_name()
    where = f"no lowering for ai.onnx::{operator} (node '{node}'): " if operator else ""
    return UnsupportedOp(f"tensorrt: {where}{' '.join(str(first.desc()).split())}")


def covered_nodes(described: str) -> dict[str, tuple[str, ...]]:
    """Layer names to the GraphIR nodes they do the work of, from the engine inspector's JSON."""
    layers = json.loads(described).get("Layers", [])
    return {
        layer["Name"]: tuple(dict.fromkeys(_ONNX_LAYER.findall(layer.get("Metadata", ""))))
        for layer in layers
        if isinstance(layer, dict)
    }


def layer_kernels(milliseconds: Mapping[str, Sequence[float]], covered: Mapping[str, tuple[str, ...]]) -> list[Kernel]:
    """A kernel for each layer, from its times in `PROFILED_RUNS` runs."""
    return [
        Kernel(
            name=name, nodes=covered.get(name, ()), calls=max(1, len(times) // PROFILED_RUNS),
            total_us=sum(times) * 1000 / PROFILED_RUNS,
        )
        for name, times in milliseconds.items()
    ]  # fmt: skip


def _level(target: Target) -> int:
    level = target.options.get("optimization_level", 3)
    if not isinstance(level, int) or level not in LEVELS:
        raise UsageError(f"tensorrt: option optimization_level={level} must be a number from 0 to 5")
    return level


def _build(trt: Any, logger: Any, model: onnx.ModelProto, target: Target) -> Any:
    """The engine: types as the graph states them, TF32 off for float32, nothing kept from earlier builds."""
    builder = trt.Builder(logger)
    builder.max_threads = target.threads
    strongly = getattr(trt.NetworkDefinitionCreationFlag, "STRONGLY_TYPED", None)  # from version 11 on all are
    network = builder.create_network(0 if strongly is None else 1 << int(strongly))
    _parse(trt.OnnxParser(network, logger), model)
    config = builder.create_builder_config()
    if target.precision == "float32":
        config.clear_flag(trt.BuilderFlag.TF32)
    config.set_flag(trt.BuilderFlag.DISABLE_TIMING_CACHE)
    config.builder_optimization_level = _level(target)
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    plan = builder.build_serialized_network(network, config)
    if plan is None:
        raise RuntimeError("tensorrt: no engine could be built (its messages are in the output of the job)")
    engine = trt.Runtime(logger).deserialize_cuda_engine(plan)
    if engine is None:
        raise RuntimeError("tensorrt: the engine cannot be loaded (its messages are in the output of the job)")
    return engine


def _parse(parser: Any, model: onnx.ModelProto) -> None:
    if model.ByteSize() < _INLINE_LIMIT:
        parsed = parser.parse(model.SerializeToString())
    else:
        with tempfile.TemporaryDirectory(prefix="graphnet-tensorrt-") as folder:
            path = Path(folder, "model.onnx")
            onnx_bridge.save_onnx(model, path)
            parsed = parser.parse_from_file(str(path))
    if not parsed:
        raise parse_error([parser.get_error(index) for index in range(parser.num_errors)])


def _size(shape: Sequence[Any], dtype: str) -> int:
    return int(math.prod(shape)) * ir_tensors.numpy_dtype(dtype).itemsize


def _allocator(trt: Any, cuda: Cuda) -> Any:
    """Memory for an output whose shape the run determines; it grows and is never given back."""

    class Allocator(trt.IOutputAllocator):  # type: ignore[misc]
        def __init__(self) -> None:
            trt.IOutputAllocator.__init__(self)
            self.address, self.size = 0, 0
            self.shape: tuple[int, ...] = ()

        def reallocate_output(self, _name: str, _memory: int, size: int, *_more: int) -> int:
            if size > self.size or not self.address:
                if self.address:
                    cuda.free(self.address)
                self.address, self.size = cuda.allocate(size), size
            return self.address

        reallocate_output_async = reallocate_output

        def notify_shape(self, _name: str, shape: Any) -> None:
            self.shape = tuple(shape)

    return Allocator()


def _profiler(trt: Any) -> Any:
    class Profiler(trt.IProfiler):  # type: ignore[misc]
        def __init__(self) -> None:
            trt.IProfiler.__init__(self)
            self.milliseconds: dict[str, list[float]] = {}

        def report_layer_time(self, layer_name: str, ms: float) -> None:
            self.milliseconds.setdefault(layer_name, []).append(ms)

    return Profiler()
