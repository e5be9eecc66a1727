"""Cold and warm compilation: which caches each process sees, and that none outlives its job."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from graphnet.errors import UsageError
from graphnet.evaluate.plan import Job, Limits
from graphnet.evaluate.records import CompileTime, Result
from graphnet.evaluate.runner import run
from graphnet.evaluate.store import Store

MakeJob = Callable[..., Job]


class Line(NamedTuple):
    """What one compilation left."""

    found: str
    folder: Path
    pid: int


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[Line]]:
    """Reads what the compilers of `caching.py` left."""
    file = tmp_path / "caching.log"
    monkeypatch.setenv("CACHING_LOG", str(file))

    def read() -> list[Line]:
        parts = [text.split("|") for text in file.read_text().splitlines()]
        return [Line(found, Path(folder), int(pid)) for found, folder, pid in parts]

    return read


@pytest.fixture
def evaluated(make_job: MakeJob, limits: Limits) -> Callable[..., list[Result]]:
    """Jobs on one compiler of `caching.py`, one after the other on one fork server."""

    def evaluate(compiler: str, *, warm: bool, names: str = "a") -> list[Result]:
        jobs = [msgspec.structs.replace(make_job(name, compiler=f"caching:{compiler}"), warm=warm) for name in names]
        return list(run(jobs, limits=limits))

    return evaluate


@pytest.mark.parametrize(
    ("compiler", "policy", "cold", "warm"),
    [
        ("NoCache", "none", ["no cache"], ["no cache", "no cache"]),
        ("OnByDefault", "on by default", ["miss"], ["miss", "hit"]),
        ("OffByDefault", "off by default", ["no cache"], ["no cache", "miss", "hit"]),
    ],
)
def test_what_each_compilation_finds(
    evaluated: Callable[..., list[Result]], log: Callable[[], list[Line]],
    compiler: str, policy: str, cold: list[str], warm: list[str],
) -> None:  # fmt: skip
    (plain,) = evaluated(compiler, warm=False)
    assert (plain.verdict, plain.warm_compile, plain.settings["compile_cache"]) == ("ok", None, policy)
    assert [line.found for line in log()] == cold
    (both,) = evaluated(compiler, warm=True)
    assert (both.verdict, both.notes) == ("ok", ())
    assert [line.found for line in log()[len(cold) :]] == warm
    assert isinstance(both.warm_compile, CompileTime)
    assert both.warm_compile.first_run_s > 0
    assert len({line.pid for line in log()}) == len(cold) + len(warm), "each in a process of its own"


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("compiler", ["OnByDefault", "NoCache"])
def test_a_cache_is_of_one_job_and_goes_with_it(
    evaluated: Callable[..., list[Result]], log: Callable[[], list[Line]], compiler: str, warm: bool
) -> None:
    evaluated(compiler, warm=warm, names="ab")
    lines = log()
    assert [line.found for line in lines].count("miss") == (2 if compiler == "OnByDefault" else 0)
    assert len({line.folder for line in lines}) == 2, "also by XDG_CACHE_HOME, where there is no cache of ours"
    assert not any(line.folder.exists() for line in lines)


def test_a_warm_compilation_that_fails_is_a_note(
    evaluated: Callable[..., list[Result]], log: Callable[[], list[Line]]
) -> None:
    (result,) = evaluated("DiesWarm", warm=True)
    assert (result.verdict, result.warm_compile) == ("ok", None)
    assert result.notes == ("no warm compilation: error in compile: ValueError: no such luck",)


def test_no_warm_compilation_after_a_crash(
    evaluated: Callable[..., list[Result]], log: Callable[[], list[Line]]
) -> None:
    (result,) = evaluated("KillsServer", warm=True)
    assert (result.verdict, result.warm_compile) == ("crashed", None)


def test_a_run_without_warm_compilation_is_not_resumed_with_it(
    tmp_path: Path, make_job: MakeJob, limits: Limits, log: Callable[[], list[Line]]
) -> None:
    job = make_job("a", compiler="caching:NoCache")
    with Store(tmp_path / "r") as store:
        list(run([job], store, limits=limits))
        with pytest.raises(UsageError, match="was made with warm none, not compilation too"):
            list(run([msgspec.structs.replace(job, warm=True)], store, limits=limits, resume=True))
