"""TensorRT where there is none: what it says, and its own logic against stand-ins for the library and the device."""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from enum import IntEnum
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from graphnet import compilers
from graphnet.compilers import Profiled, Target
from graphnet.compilers.tensorrt import Cuda, TensorRt, covered_nodes, layer_kernels, parse_error
from graphnet.errors import CompilerNotFound, DeviceNotPresent, UnsupportedOp, UsageError
from graphnet.ir.graph import Dim, DType, Graph, Input, Node, Value


class Status(IntEnum):
    """Of the CUDA runtime, with its numbers."""

    cudaSuccess = 0
    cudaErrorInvalidValue = 1
    cudaErrorNoDevice = 100


class HostMemory(ModuleType):
    """The CUDA runtime's calls on the host's memory."""

    cudaMemcpyKind = SimpleNamespace(cudaMemcpyHostToDevice=1, cudaMemcpyDeviceToHost=2)

    def __init__(self, count: int = 1, status: Status = Status.cudaSuccess) -> None:
        super().__init__("cuda.bindings.runtime")
        self.count, self.status = count, status
        self.buffers: dict[int, np.ndarray] = {}
        self.synchronized = 0

    def cudaGetDeviceCount(self) -> tuple[Status, int]:
        return self.status, self.count

    def cudaGetDeviceProperties(self, device: int) -> tuple[Status, Any]:
        return Status.cudaSuccess, SimpleNamespace(name=b"Stand-in")

    def cudaStreamCreate(self) -> tuple[Status, int]:
        return Status.cudaSuccess, 7

    def cudaStreamSynchronize(self, stream: int) -> tuple[Status]:
        self.synchronized += 1
        return (Status.cudaSuccess if stream == 7 else Status.cudaErrorInvalidValue,)

    def cudaMalloc(self, size: int) -> tuple[Status, int]:
        buffer = np.zeros(size, np.uint8)
        self.buffers[buffer.ctypes.data] = buffer
        return Status.cudaSuccess, buffer.ctypes.data

    def cudaFree(self, address: int) -> tuple[Status]:
        del self.buffers[address]
        return (Status.cudaSuccess,)

    def cudaMemcpy(self, target: int, source: int, size: int, kind: int) -> tuple[Status]:
        on_device = target if kind == 1 else source
        if self.buffers[on_device].size < size:
            return (Status.cudaErrorInvalidValue,)
        ctypes.memmove(target, source, size)
        return (Status.cudaSuccess,)


class Twice:
    """An execution context of an engine that doubles float32[4]; `dynamic` gives the shape only when it runs."""

    def __init__(self, dynamic: bool) -> None:
        self.dynamic, self.profiler = dynamic, None
        self.addresses: dict[str, int] = {}
        self.allocator: Any = None

    def set_tensor_address(self, name: str, address: int) -> None:
        self.addresses[name] = address

    def set_output_allocator(self, name: str, allocator: Any) -> None:
        self.allocator = allocator

    def get_tensor_shape(self, name: str) -> tuple[int, ...]:
        return (-1,) if self.dynamic else (4,)

    def execute_async_v3(self, stream: int) -> bool:
        x = np.ctypeslib.as_array((ctypes.c_float * 4).from_address(self.addresses["x"])).copy()
        if self.dynamic:
            address = self.allocator.reallocate_output_async("y", 0, 16, 256, stream)
            self.allocator.notify_shape("y", (4,))
        else:
            address = self.addresses["y"]
        np.ctypeslib.as_array((ctypes.c_float * 4).from_address(address))[:] = 2 * x
        if self.profiler:
            self.profiler.report_layer_time("sum", 0.25)
        return True


class Library(ModuleType):
    """As much of `tensorrt` as a build of `Twice` takes; it notes what the builder was told."""

    Logger = type("Logger", (), {"ERROR": 1, "__init__": lambda self, severity: None})
    NetworkDefinitionCreationFlag = SimpleNamespace(STRONGLY_TYPED=1)
    BuilderFlag = SimpleNamespace(TF32="TF32", DISABLE_TIMING_CACHE="DISABLE_TIMING_CACHE")
    ProfilingVerbosity = SimpleNamespace(DETAILED="DETAILED")
    LayerInformationFormat = SimpleNamespace(JSON="JSON")
    IProfiler = IOutputAllocator = object

    def __init__(self, *, dynamic: bool = False, errors: tuple[Any, ...] = ()) -> None:
        super().__init__("tensorrt")
        self.flags = {"TF32"}
        self.told: dict[str, Any] = {}
        inspector = SimpleNamespace(
            get_engine_information=lambda _: '{"Layers": [{"Name": "sum", "Metadata": "[ONNX Layer: sum]"}]}'
        )
        engine = SimpleNamespace(
            num_layers=1, create_execution_context=lambda: Twice(dynamic), create_engine_inspector=lambda: inspector
        )
        config = SimpleNamespace(set_flag=self.flags.add, clear_flag=self.flags.discard)
        self.Builder = lambda _: SimpleNamespace(
            create_network=lambda flags: self.told.setdefault("network", flags),
            create_builder_config=lambda: config,
            build_serialized_network=lambda _, config: self.told.update(vars(config)) or b"plan",
        )
        self.OnnxParser = lambda *_: SimpleNamespace(
            parse=lambda model: not errors, num_errors=len(errors), get_error=lambda index: errors[index]
        )
        self.Runtime = lambda _: SimpleNamespace(deserialize_cuda_engine=lambda plan: engine)


def twice(dtype: DType = "float32", *, dynamic: bool = False) -> Graph:
    return Graph(
        name="twice", inputs=(Input(name="x", dtype=dtype, shape=(4,)),), outputs=("y",),
        nodes=(Node(op="Add", name="sum", inputs=("x", "x"), outputs=("y",)),),
        values={"y": Value(dtype=dtype, shape=("n",) if dynamic else (4,))},
        dims={"n": Dim(min=0, max=4, default=1, data_dependent=True)} if dynamic else {},
    )  # fmt: skip


def complaint(operator: str, node: str, text: str) -> Any:
    return SimpleNamespace(node_operator=lambda: operator, node_name=lambda: node, desc=lambda: text)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> HostMemory:
    memory = HostMemory()
    monkeypatch.setitem(sys.modules, "cuda.bindings.runtime", memory)
    return memory


@pytest.mark.skipif(importlib.util.find_spec("tensorrt") is not None, reason="the package is installed")
def test_registry_says_what_to_install() -> None:
    with pytest.raises(CompilerNotFound, match=r"'tensorrt' needs: pip install tensorrt"):
        compilers.get("tensorrt")


def test_absent_device_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings.runtime", HostMemory(0, Status.cudaErrorNoDevice))
    with pytest.raises(DeviceNotPresent, match=r"tensorrt: no CUDA device on this machine .*cudaErrorNoDevice"):
        TensorRt().configure(Target(device="cuda"))
    monkeypatch.setitem(sys.modules, "cuda.bindings.runtime", HostMemory(0))
    with pytest.raises(DeviceNotPresent, match="it takes an NVIDIA GPU and its driver"):
        TensorRt().configure(Target(device="cuda"))
    monkeypatch.setitem(sys.modules, "cuda.bindings.runtime", None)
    with pytest.raises(DeviceNotPresent, match=r"no CUDA device on this machine \(.*cuda.bindings.runtime"):
        Cuda()


def test_other_devices_are_refused() -> None:
    with pytest.raises(DeviceNotPresent, match="no device 'cpu'"):
        TensorRt().configure(Target())


def test_settings_and_options(device: HostMemory) -> None:
    settings = TensorRt().configure(Target(device="cuda", options={"optimization_level": 5}))
    assert (settings["device"], settings["precision"], settings["optimization_level"]) == ("Stand-in", "float32", 5)
    with pytest.raises(UsageError, match="optimization_level=9 must be a number from 0 to 5"):
        TensorRt().configure(Target(device="cuda", options={"optimization_level": 9}))
    with pytest.raises(UsageError, match="unknown option 'fp16'"):
        TensorRt().configure(Target(device="cuda", options={"fp16": True}))
    with pytest.raises(UsageError, match="unknown pass 'Fuse'"):
        TensorRt().configure(Target(device="cuda", passes=("Fuse",)))


@pytest.mark.parametrize("dynamic", [False, True])
def test_program_moves_data_and_waits(device: HostMemory, monkeypatch: pytest.MonkeyPatch, dynamic: bool) -> None:
    monkeypatch.setitem(sys.modules, "tensorrt", Library(dynamic=dynamic))
    program = TensorRt().compile(twice(dynamic=dynamic), {}, Target(device="cuda"))
    for first in (1.0, 5.0):
        x = np.arange(first, first + 4, dtype=np.float32)
        program.bind({"x": x})
        waited = device.synchronized
        program.run()
        assert device.synchronized == waited + 1
        [y] = program.outputs()
        assert y.dtype == np.float32
        np.testing.assert_array_equal(y, x + x)


def test_kernels_are_mean_times_with_nodes(device: HostMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorrt", Library())
    program = TensorRt().compile(twice(), {}, Target(device="cuda"))
    assert isinstance(program, Profiled)
    program.bind({"x": np.ones(4, np.float32)})
    [kernel] = program.kernels()
    assert (kernel.name, kernel.nodes, kernel.calls, kernel.total_us) == ("sum", ("sum",), 1, 250.0)


@pytest.mark.parametrize(("precision", "tf32"), [("float32", False), ("fast", True)])
def test_builder_is_told(device: HostMemory, monkeypatch: pytest.MonkeyPatch, precision: str, tf32: bool) -> None:
    library = Library()
    monkeypatch.setitem(sys.modules, "tensorrt", library)
    target = Target(device="cuda", precision=precision, options={"optimization_level": 1})
    TensorRt().compile(twice(), {}, target)
    assert ("TF32" in library.flags) == tf32
    assert "DISABLE_TIMING_CACHE" in library.flags
    assert library.told["network"] == 1 << 1
    assert library.told["builder_optimization_level"] == 1


def test_parser_errors_name_operator_and_node(device: HostMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    errors = (complaint("Det", "n3", "Plugin not\n  found"), complaint("", "", "aborted"))
    monkeypatch.setitem(sys.modules, "tensorrt", Library(errors=errors))
    with pytest.raises(
        UnsupportedOp, match=r"^tensorrt: no lowering for ai.onnx::Det \(node 'n3'\): Plugin not found$"
    ):
        TensorRt().compile(twice(), {}, Target(device="cuda"))
    assert str(parse_error(errors[1:])) == "tensorrt: aborted"
    assert "without a reason" in str(parse_error(()))


@pytest.mark.parametrize("dtype", ["float64", "complex64", "uint16", "string"])
def test_types_that_an_engine_cannot_have(dtype: DType) -> None:
    with pytest.raises(UnsupportedOp, match=rf"no inputs or outputs of type {dtype} \('x'\)"):
        TensorRt().compile(twice(dtype), {}, Target(device="cuda"))


def test_layers_cover_the_nodes_in_their_metadata() -> None:
    described = """{"Layers": [
        {"Name": "conv + relu", "Metadata": "[ONNX Layer: conv]\\u001e[ONNX Layer: relu]\\u001e[ONNX Layer: conv]"},
        {"Name": "Reformatting CopyNode for Input Tensor 0", "Metadata": ""}, "no details"
    ], "Bindings": ["x", "y"]}"""
    assert covered_nodes(described) == {
        "conv + relu": ("conv", "relu"), "Reformatting CopyNode for Input Tensor 0": (),
    }  # fmt: skip


def test_a_layer_that_runs_twice_an_inference() -> None:
    [kernel] = layer_kernels({"body": [0.5] * 20}, {"body": ("loop",)})
    assert (kernel.calls, kernel.total_us, kernel.nodes) == (2, 1000.0, ("loop",))
