"""Code quality: what each kernel's hot loop is made of and how full it keeps the pipeline, weighted by kernel time."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from graphnet.analyze import assembly, mca
from graphnet.compilers import llvm_tools
from graphnet.errors import StoreError, ToolNotFound
from graphnet.evaluate import code_files, environment
from graphnet.evaluate.records import Result
from graphnet.ir.fileio import write_atomic

QUALITY_FORMAT = "graphnet-code-quality/1"
QUALITY = "quality.json"
MACHINES = ("x86_64", "AMD64")
"""Machines whose assembly is understood."""


class _Struct(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    pass


class HotLoop(_Struct, frozen=True, kw_only=True):
    """The innermost loop with most floating-point work (`assembly.hottest`)."""

    function: str
    lines: tuple[tuple[int, int], ...]
    """First and last line of each contiguous part in the kernel's assembly file, from 1."""
    mix: assembly.Mix
    throughput: mca.Throughput | None = None
    problem: str = ""
    """Why there is no throughput."""


class KernelQuality(_Struct, frozen=True, kw_only=True):
    """One kernel. Shares are None where they mean nothing: a library call, no floating-point arithmetic."""

    kernel: str
    time_us: float | None = None
    """Per inference, all calls together; None where no profile has it."""
    library: str = ""
    """The library that is called; such a kernel has no other figure."""
    file: str = ""
    """Assembly file, in the folder of the index."""
    problem: str = ""
    """Why the code was not analysed."""
    loop: HotLoop | None = None
    """None where the kernel has no loop."""
    whole: assembly.Mix | None = None
    """The kernel's functions from end to end."""
    spills: int | None = None
    """Loads and stores of the stack in its loops."""

    @property
    def saturation(self) -> float | None:
        """IPC of the hot loop / dispatch width."""
        return self.loop.throughput.saturation if self.loop and self.loop.throughput else None

    @property
    def vector_share(self) -> float | None:
        """Packed among floating-point instructions of the hot loop (of the whole kernel where it has no loop)."""
        mix = self._mix
        return mix.vector_floats / mix.floats if mix and mix.floats else None

    @property
    def fma_share(self) -> float | None:
        """Multiply-adds among floating-point instructions of the same code."""
        mix = self._mix
        return mix.fused / mix.floats if mix and mix.floats else None

    @property
    def width(self) -> int | None:
        """Bits that the widest floating-point instruction of the same code works on."""
        return self._mix.width if self._mix else None

    @property
    def _mix(self) -> assembly.Mix | None:
        return self.loop.mix if self.loop else self.whole


class CodeQuality(_Struct, frozen=True, kw_only=True, tag=QUALITY_FORMAT, tag_field="format"):
    """One job. Means are weighted by the time of the kernels that have the figure; None where none has."""

    job_key: str
    graph: str
    compiler: str
    measured: str
    """When the job that gave the times was started."""
    coded: bool = True
    """False for a compiler that runs kernels of a library only."""
    mcpu: str = ""
    llvm: int = 0
    """Release of `llvm-mca`; 0 where it is absent."""
    vector_bits: int | None = None
    kernels: tuple[KernelQuality, ...] = ()
    saturation: float | None = None
    vector_share: float | None = None
    fma_share: float | None = None
    width_share: float | None = None
    """Vector width used / widest available."""
    spills: int | None = None
    """Of all kernels; those that share their code count once."""
    library_share: float | None = None
    """Share of the time of all kernels that is spent in library calls."""
    saturation_time_share: float | None = None
    """Share of that time in kernels that have a saturation."""
    notes: tuple[str, ...] = ()


def load(results: str | os.PathLike[str]) -> dict[str, CodeQuality]:
    """What was stored of each job of a results folder, by job key; jobs that `update` has not seen are left out.

    Raises StoreError.
    """
    found = (read(path.with_name(QUALITY)) for path in code_files.indexes(results) if path.with_name(QUALITY).exists())
    return {quality.job_key: quality for quality in found}


def update(
    folder: str | os.PathLike[str], results: Iterable[Result], wanted: Callable[[Result], bool] = lambda _: True
) -> dict[str, CodeQuality]:
    """Analyse the code of a results folder and store it as `quality.json` beside the files; returns it by job key.

    What is stored already of the same measurement by the same `llvm-mca` is not done again. Raises StoreError.

    Args:
        folder: of the results.
        results: of that folder.
        wanted: tells the results to look at.
    """
    by_key = {result.job_key: result for result in results if wanted(result)}
    found = {}
    for path in code_files.indexes(folder):
        index = code_files.read(path)
        if index.job_key in by_key:
            found[index.job_key] = _current(path.with_name(QUALITY), index, by_key[index.job_key])
    return found


def read(path: Path) -> CodeQuality:
    """A stored analysis. Raises StoreError."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=CodeQuality)
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}") from error
    except (msgspec.DecodeError, ValueError) as error:
        raise StoreError(
            f"{path} is no analysis of this version ({QUALITY_FORMAT}): {error}; remove it and run `graphnet codegen`"
        ) from error


def _current(path: Path, index: code_files.CodeIndex, result: Result) -> CodeQuality:
    if path.exists():
        stored = read(path)
        if (stored.measured, stored.llvm) == (result.started, _release()):
            return stored
    quality = analyze(path.parent, index, result)
    try:
        write_atomic(path, msgspec.json.format(msgspec.json.encode(quality)))
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}") from error
    return quality


def analyze(folder: Path, index: code_files.CodeIndex, result: Result) -> CodeQuality:
    """The figures of one job from its files and the kernel times of its result. Raises StoreError."""
    times: dict[str, float] = defaultdict(float)
    for kernel in result.kernels:
        times[kernel.name] += kernel.total_us
    cpu = index.mcpu or (llvm_tools.host_cpu() if result.environment == environment.detect().key else "")
    files: dict[str, KernelQuality] = {}
    kernels = []
    for entry in index.kernels:
        if entry.assembly and entry.assembly not in files:
            files[entry.assembly] = _of_file(folder, entry.assembly, index.machine, cpu)
        base = files.get(entry.assembly) or KernelQuality(
            kernel="", problem="" if entry.library else entry.left_out or "the compiler showed no code"
        )
        kernels.append(
            msgspec.structs.replace(base, kernel=entry.kernel, time_us=times.get(entry.kernel), library=entry.library)
        )
    notes = () if result.kernels else ("without a profile there are no weights: evaluate with --profile",)
    quality = CodeQuality(
        job_key=index.job_key, graph=index.graph, compiler=index.compiler, measured=result.started, coded=index.coded,
        mcpu=cpu, llvm=_release(), vector_bits=index.vector_bits, kernels=tuple(kernels), notes=notes,
        spills=_sum(kernel.spills for kernel in files.values()),
    )  # fmt: skip
    return msgspec.structs.replace(quality, **_weighted(quality, sum(times.values())))


def _weighted(quality: CodeQuality, total_us: float) -> dict[str, float | None]:
    timed = [kernel for kernel in quality.kernels if kernel.time_us]
    bits = quality.vector_bits
    library = sum(kernel.time_us or 0.0 for kernel in timed if kernel.library)
    known = sum(kernel.time_us or 0.0 for kernel in timed if kernel.saturation is not None)
    return {
        "saturation": _mean(timed, lambda kernel: kernel.saturation),
        "vector_share": _mean(timed, lambda kernel: kernel.vector_share),
        "fma_share": _mean(timed, lambda kernel: kernel.fma_share),
        "width_share": _mean(timed, lambda kernel: kernel.width / bits if kernel.width and bits else None),
        "library_share": library / total_us if total_us and quality.coded else None,
        "saturation_time_share": known / total_us if total_us and quality.coded else None,
    }


def _mean(kernels: Sequence[KernelQuality], figure: Callable[[KernelQuality], float | None]) -> float | None:
    pairs = [(kernel.time_us or 0.0, value) for kernel in kernels if (value := figure(kernel)) is not None]
    weight = sum(time for time, _ in pairs)
    return sum(time * value for time, value in pairs) / weight if weight else None


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _of_file(folder: Path, name: str, machine: str, cpu: str) -> KernelQuality:
    """Everything about one assembly file but the kernel's name and time."""
    bare = KernelQuality(kernel="", file=name)
    if machine not in MACHINES:
        return msgspec.structs.replace(bare, problem=f"{machine} assembly is not analysed")
    functions = assembly.parse(code_files.text_of(folder, name))
    if not any(function.instructions for function in functions):
        return msgspec.structs.replace(bare, problem="no instructions found")
    hot = assembly.hottest(functions)
    return msgspec.structs.replace(
        bare,
        loop=_hot_loop(hot, cpu) if hot else None,
        whole=assembly.mix(item for function in functions for item in function.instructions),
        spills=sum(assembly.mix(assembly.in_loops(function), function.framed).stack for function in functions),
    )


def _hot_loop(loop: assembly.Loop, cpu: str) -> HotLoop:
    mix = assembly.mix(loop.instructions, loop.framed)
    found = HotLoop(function=loop.function, lines=tuple(_ranges(loop)), mix=mix)
    problem = ""
    if mix.calls:
        problem = "the loop calls functions, whose time llvm-mca does not know"
    elif not cpu:
        problem = "unknown: llvm-mca is absent" if not _release() else "unknown: the CPU's LLVM name was not recorded"
    if not problem:
        try:
            return msgspec.structs.replace(found, throughput=mca.simulate(loop.text, cpu))
        except ToolNotFound:
            problem = f"unknown: llvm-mca is absent; install {llvm_tools.PACKAGE}"
        except mca.McaError as error:
            problem = f"unknown: {error}"
    return msgspec.structs.replace(found, problem=problem)


def _ranges(loop: assembly.Loop) -> Iterator[tuple[int, int]]:
    """Contiguous parts in lines of the file; a label between two instructions does not part them."""
    labelled = {loop.instructions[index].line for index in loop.labels.values()}
    first = last = loop.instructions[0].line
    for item in loop.instructions[1:]:
        step = item.line - last
        if step != 1 and not (item.line in labelled and step == 2):
            yield first, last
            first = item.line
        last = item.line
    yield first, last


def _release() -> int:
    """LLVM release of the `llvm-mca` that is used; 0 where there is none."""
    try:
        return llvm_tools.release(llvm_tools.find("llvm-mca"))
    except ToolNotFound:
        return 0
