"""TorchInductor (`inductor`) through `torch.compile(fullgraph=True)`; its caches are off, or in a folder of the job."""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import fx

from graphnet.compilers import Kernel, KernelCode, Target, Tensors, check_target
from graphnet.compilers.inductor.code import Source, emitted, recorded_sources
from graphnet.compilers.inductor.kernels import Covered, kernel_times, recorded_provenance
from graphnet.compilers.torch_program import TorchProgram, configure_torch, torch_device
from graphnet.errors import UsageError
from graphnet.ir import tensors as ir_tensors
from graphnet.ir.graph import Graph
from graphnet.lower.torch.graph import lower

with warnings.catch_warnings():
    # Inductor's own imports still use torch.jit, which warns that it is deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    import torch._dynamo
    import torch._functorch.config as functorch_config
    import torch._inductor.compile_fx
    import torch._inductor.config as inductor_config
    from torch._dynamo.utils import counters
    from torch._inductor import codecache, cpu_vec_isa

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
RECOMPILE_LIMIT = 1 << 16
"""Variants of one function that Dynamo keeps. By default it gives up compiling after 8 shapes."""
_CONFIG = "config."
_NOTHING = '#include <torch/csrc/inductor/cpp_prefix.h>\nextern "C" void kernel(long) {}'


class Inductor:
    """`inductor`: options `freezing` (weights become constants of the program), `mode`, `config.NAME` (Inductor's)."""

    name = "inductor"
    packages = ("torch",)
    devices = ("cpu", "cuda", "metal")
    cache_by_default = True

    def __init__(self) -> None:
        self._cache: Path | None = None

    def preload(self) -> None:
        """Importing this module imported Dynamo and Inductor; find out the rest of the toolchain once for all jobs.

        Inductor compiles and runs probes for the vector instructions, and precompiles its C++ header, which is kept on
        the disk: done here, no job's compile time depends on whether it was the first.
        """
        cpu_vec_isa.pick_vec_isa()
        with tempfile.TemporaryDirectory(prefix="graphnet-inductor-") as folder, _cache_in(folder):
            codecache.CppPythonBindingsCodeCache.load_pybinding(["long"], _NOTHING)

    def use_cache(self, folder: Path) -> None:
        """Inductor's and AOTAutograd's caches, which are on unless one turns them off."""
        self._cache = folder

    def configure(self, target: Target) -> dict[str, Any]:
        """Threads, device, precision; caches off so that compile time is honest; compile in this process."""
        check_target(self.name, target, ("freezing", "mode", _CONFIG))
        settings = configure_torch(target)
        _forget(keep_code=self._cache is not None)
        torch._dynamo.config.capture_dynamic_output_shape_ops = True
        torch._dynamo.config.recompile_limit = RECOMPILE_LIMIT
        torch._dynamo.config.accumulated_recompile_limit = RECOMPILE_LIMIT
        torch._dynamo.config.suppress_errors = False  # else what fails to compile runs eagerly, and nobody is told
        inductor_config.compile_threads = 1
        inductor_config.freezing = _flag(target, "freezing")
        # A mark per kernel for the profiler; with no profiler running, on/off latencies differ by less than off/off.
        inductor_config.cpp.enable_kernel_profile = True
        inductor_config.trace.provenance_tracking_level = 1
        inductor_config.cpp.threads = target.threads
        _configure(target)
        return {
            **settings,
            "freezing": inductor_config.freezing,
            "mode": _mode(target),
            "fullgraph": True,
            "recompile_limit": RECOMPILE_LIMIT,
        }

    def compile(self, graph: Graph, tensors: Tensors, target: Target) -> InductorProgram:
        """Lower and compile (Inductor compiles when called, so the program is called once, on the graph's inputs).

        Raises UnsupportedOp; RuntimeError when nothing was compiled.
        """
        device, start = torch_device(target), time.perf_counter()
        module = lower(graph, tensors).to(device)
        spent = time.perf_counter() - start
        with tempfile.TemporaryDirectory(prefix="graphnet-inductor-") as folder, _cache_in(str(self._cache or folder)):
            program = InductorProgram(graph, module, device, _mode(target))
        program.lower_s = spent
        return program


class InductorProgram(TorchProgram):
    """The compiled module."""

    def __init__(self, graph: Graph, module: fx.GraphModule, device: torch.device, mode: str) -> None:
        torch._dynamo.reset()
        super().__init__(graph, torch.compile(module, fullgraph=True, dynamic=False, mode=mode), device)
        self.module = module
        self.bind(ir_tensors.inputs(graph))
        self.covered: Covered = {}
        self._sources: dict[str, Source] = {}
        self._graphs_before = _graphs_compiled()
        with recorded_provenance(self.covered), recorded_sources(self._sources):
            self.run()
        if not self.compilations:
            raise RuntimeError(
                "Dynamo compiled nothing and ran the graph eagerly; is it turned off (TORCHDYNAMO_DISABLE)?"
            )
        self.details = {"compilations": self.compilations}

    @property
    def compilations(self) -> int:
        """How often this process has compiled since the program began: again for each new shape of its inputs."""
        return _graphs_compiled() - self._graphs_before

    def kernels(self) -> Sequence[Kernel]:
        """Mean time of each kernel and library call over a few profiled runs."""
        return kernel_times(self.run, self.covered)

    def code(self) -> Sequence[KernelCode]:
        """Assembly of the generated kernels, and the library calls between them."""
        return emitted(self._sources, (call.partition(":")[0] for call in self.covered))


def _graphs_compiled() -> int:
    return int(counters["stats"]["unique_graphs"])


def _forget(keep_code: bool) -> None:
    """Nothing learnt in an earlier compilation may shorten this one, but for code in the folder that we name."""
    inductor_config.fx_graph_cache = keep_code
    inductor_config.fx_graph_remote_cache = False
    functorch_config.enable_autograd_cache = keep_code
    functorch_config.enable_remote_autograd_cache = False
    torch._dynamo.config.automatic_dynamic_local_pgo = False
    torch._dynamo.config.automatic_dynamic_remote_pgo = False


@contextmanager
def _cache_in(folder: str) -> Iterator[None]:
    """Compiled C++ is always kept in a folder by the hash of its source: give each compilation an empty one."""
    before = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
    try:
        yield
    finally:
        if before is None:
            del os.environ["TORCHINDUCTOR_CACHE_DIR"]
        else:
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = before


def _configure(target: Target) -> None:
    """Set what options `config.NAME` ask of `torch._inductor.config`. Raises UsageError."""
    for key, value in target.options.items():
        if not key.startswith(_CONFIG):
            continue
        name = key.removeprefix(_CONFIG)
        if name not in inductor_config.get_config_copy():
            raise UsageError(f"inductor: torch._inductor.config has no '{name}'")
        inductor_config.load_config({name: value})


def _flag(target: Target, name: str) -> bool:
    value = target.options.get(name, False)
    if isinstance(value, bool):
        return value
    if str(value).lower() not in ("0", "1", "true", "false"):
        raise UsageError(f"inductor: option {name}={value} must be true or false")
    return str(value).lower() in ("1", "true")


def _mode(target: Target) -> str:
    mode = str(target.options.get("mode", "default"))
    if mode not in MODES:
        raise UsageError(f"inductor: option mode={mode} is unknown; use {', '.join(MODES)}")
    return mode
