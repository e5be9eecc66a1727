"""Which jobs: graphs x compilers, and the key that makes a job the same job after a restart."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from graphnet.compilers import DEFAULT_PASS, Option, Target, check_name, names, split, variants
from graphnet.compilers import passes as native_passes
from graphnet.errors import UsageError
from graphnet.ir import sidecar
from graphnet.ir.graph import Graph, Source

DEFAULT_BUDGET_S = 10.0
DEFAULT_TOLERANCE = -3


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One graph on one compiler."""

    graph: Graph | str
    """A graph, or the path of a file (`.json`, `.json.zst`, `.onnx`)."""
    compiler: str
    """A registered name, one with a variant (`inductor:freezing`) or `module:Class`."""
    target: Target = Target()
    dims: dict[str, int] = {}
    """Sizes of symbolic dimensions; those left out take their defaults."""
    seed: int = 0
    passes: tuple[str, ...] = ("default",)
    """As they were asked for; what those of a compiler come to is in `target`."""
    budget_s: float = DEFAULT_BUDGET_S
    """Seconds of timed runs."""
    tolerance: int = DEFAULT_TOLERANCE
    """Largest tolerance level t that still counts as `ok`."""
    profile: bool = True
    """Ask the program for kernel times, in a run of its own after the timed ones."""
    code: str = ""
    """Results folder that the code of the kernels is written to, last of all; `""` when it is not wanted."""
    warm: bool = False
    """Compile again in a new process, with the caches of compiled code that the first compilation left."""
    race: str = ""
    """Jobs of one race that follow each other are timed in turns; those without a name run alone."""
    copy: int = 0
    """Tells apart jobs that are the same: for a comparison of a program with itself."""
    python: str = ""
    """Interpreter of the environment that the compiler is taken from; `""` is ours."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What a job may use. Seconds of wall time per stage, bytes of resident memory."""

    load_s: float = 300.0
    """Decoding, binding, weights and inputs."""
    compile_s: float = 1800.0
    """Lowering and compiling."""
    run_s: float = 900.0
    """First run, warm-up and timed runs; also the profiled run."""
    check_s: float = 600.0
    memory_bytes: int | None = None
    """Of the child and all that it starts, together; by default 90 % of what the machine (or cgroup) has."""
    preload_s: float = 300.0
    """Import of the framework in the fork server."""


def plan(
    graphs: Iterable[Graph | str | os.PathLike[str]],
    compilers: Sequence[str],
    *,
    target: Target | None = None,
    dims: Mapping[str, int] | None = None,
    seed: int = 0,
    passes: Sequence[str] = ("default",),
    budget_s: float = DEFAULT_BUDGET_S,
    tolerance: int = DEFAULT_TOLERANCE,
    profile: bool = True,
    code: str = "",
    warm: bool = False,
    race: str = "",
) -> list[Job]:
    """Jobs graph by graph; those of a graph form a race, in which the compilers take turns.

    `race` begins the names of the races.

    An option `inductor.freezing` of the target is meant for that compiler alone, and so is a pass of a compiler (see
    `graphnet.compilers.passes`). Raises UsageError.
    """
    if not compilers:
        raise UsageError("no compiler given; `graphnet compilers` lists them")
    if not budget_s > 0:
        raise UsageError(f"budget {budget_s} is not a positive number of seconds")
    if not -10 <= tolerance <= 0:
        raise UsageError(f"tolerance level {tolerance} is not in -10..0")
    for compiler in compilers:
        check_name(compiler)
    _check_options(compilers, (target or Target()).options)
    _check_passes(compilers, passes)
    return [
        Job(
            graph=graph if isinstance(graph, Graph) else os.fspath(graph), compiler=compiler,
            target=_target_of(compiler, compilers, target or Target(), passes), dims=dict(dims or {}), seed=seed,
            passes=tuple(passes), budget_s=budget_s, tolerance=tolerance, profile=profile, code=code, warm=warm,
            race=f"{race}{number}",
        )
        for number, graph in enumerate(graphs, 1)
        for compiler in dict.fromkeys(compilers)
    ]  # fmt: skip


def against_itself(
    graph: Graph | str | os.PathLike[str], compiler: str, target: Target, budget_s: float, race: str
) -> list[Job]:
    """Three jobs of one program: two that take turns, then one alone. Raises UsageError."""
    (job,) = plan([graph], [compiler], target=target, budget_s=budget_s, profile=False)
    races = race, race, f"{race}.alone"
    return [msgspec.structs.replace(job, race=name, copy=number) for number, name in enumerate(races)]


def graph_passes(passes: Sequence[str]) -> tuple[str, ...]:
    """The passes that rewrite GraphIR, in order: neither `default` nor those of a compiler."""
    return tuple(name for name in passes if name != DEFAULT_PASS and native_passes.find(name) is None)


def _check_options(compilers: Sequence[str], options: Mapping[str, Option]) -> None:
    for key in options:
        owner = _owner(key, compilers)[0]
        if owner and owner not in compilers and owner not in map(_base, compilers):
            raise UsageError(f"option '{key}' is for compiler '{owner}', which is not among {', '.join(compilers)}")


def _check_passes(compilers: Sequence[str], passes: Sequence[str]) -> None:
    bases = [_base(compiler) for compiler in compilers]
    for name in passes:
        native = native_passes.find(name)
        if native is not None and native.compiler not in bases:
            raise UsageError(
                f"pass '{name}' is of compiler '{native.compiler}', which is not among {', '.join(compilers)}"
            )
    if graph_passes(passes):
        from graphnet.rewrite.passes import require_known  # imports much

        require_known(graph_passes(passes), also=native_passes.known())


def _target_of(compiler: str, compilers: Sequence[str], target: Target, passes: Sequence[str]) -> Target:
    """The target with what is meant for this compiler; of equal keys the most particular one counts."""
    base, variant = split(compiler)
    from_passes, library = native_passes.resolve(base, passes)
    options = {**(variants(base)[variant] if variant else {}), **from_passes}
    for owner in ("", base, compiler):
        for key, value in target.options.items():
            found, own_key = _owner(key, compilers)
            if found == owner:
                options[own_key] = value
    return msgspec.structs.replace(target, options=options, passes=library)


def _owner(key: str, compilers: Sequence[str]) -> tuple[str, str]:
    """Compiler (or variant) that an option is meant for, and the option's own name; `("", key)` if it is for all."""
    for owner in [*compilers, *names()]:
        if key.startswith(f"{owner}."):
            return owner, key[len(owner) + 1 :]
    return "", key


def _base(compiler: str) -> str:
    return split(compiler)[0]


def graph_digest(graph: Graph) -> str:
    """32 hex digits over everything that decides what the graph computes, names included; metadata left out.

    A sidecar counts by path, size and time of change.
    """
    bare = msgspec.structs.replace(
        sidecar.unlink(graph), graph_id="", name="", domain="other", tier=None, framework="", source=Source(),
        input_shapes=(), operator_count=None, operator_distribution={}, parameters=None, flops=None, bytes=None,
        unknown_cost={}, arithmetic_intensity=None, compute_intensity=None, stored_hash=None,
    )  # fmt: skip
    digest = hashlib.sha256(msgspec.json.encode(bare))
    place = sidecar_of(graph)
    if place:
        found = os.stat(place)
        digest.update(f"{place} {found.st_size} {found.st_mtime_ns}".encode())
    return digest.hexdigest()[:32]


def sidecar_of(graph: Graph) -> str:
    """Path of the file with the exact weights of a loaded graph; `""` when it has none."""
    fills = (weight.fill for weight in graph.weights.values())
    return next((fill.path for fill in fills if isinstance(fill, sidecar.Located)), "")


def job_key(job: Job, name: str, digest: str) -> str:
    """32 hex digits, the same for the same measurement on any day.

    `name` tells apart graphs that compute the same; `digest` is `graph_digest`, or stands for a file that is no graph.

    Budget, tolerance, profile, code, warm and race are left out: they say how well one measures, not what.
    """
    parts: list[object] = [name, digest, job.compiler, job.target, sorted(job.dims.items()), job.seed, job.passes]
    if job.copy or job.python:
        parts += [job.copy, job.python]
    return hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()[:32]
