from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest

from graphnet.compilers import Target
from graphnet.evaluate import oracle, procfs
from graphnet.evaluate.plan import Job, Limits, graph_digest
from graphnet.evaluate.records import Result
from graphnet.evaluate.runner import run
from graphnet.ir import tensors
from graphnet.ir.graph import Constant, Dim, Graph, Input, Node, Value, Weight


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Reference outputs of a test stay in its folder; compilers of `faulty.py` can be imported by children."""
    monkeypatch.setenv("GRAPHNET_CACHE", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    return tmp_path / "cache"


@pytest.fixture
def processes_left(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[int]]:
    """Asks for all processes that this test started, directly or not, and that still live."""
    token = secrets.token_hex(8)
    monkeypatch.setenv("GRAPHNET_TEST", token)
    return lambda: procfs.marked(f"GRAPHNET_TEST={token}")


@pytest.fixture
def limits() -> Limits:
    """Short, but long enough for a busy machine."""
    return Limits(load_s=20, compile_s=20, run_s=20, check_s=20)


@pytest.fixture
def make_graph() -> Callable[[str], Graph]:
    """y = 2 x on float32[4, 8], by name."""
    return _double


@pytest.fixture
def make_job(own_cache: Path) -> Callable[..., Job]:
    """A job on y = 2 x with a fault at a stage; its reference is in the cache, so nobody waits for the real one."""

    def make(name: str = "g", fault: str = "", at: str = "", compiler: str = "faulty:Faulty") -> Job:
        graph = _double(name)
        inputs = tensors.inputs(graph, oracle.check_seed(0))
        oracle.write(
            oracle.cache_folder() / oracle.file_name(graph_digest(graph), {}, 0), [2 * inputs["x"].astype(np.float64)]
        )
        return Job(graph=graph, compiler=compiler, target=Target(options={"fault": fault, "at": at}), budget_s=0.02)

    return make


@pytest.fixture
def evaluate(make_job: Callable[..., Job], limits: Limits) -> Callable[..., Result]:
    """Evaluate one faulty job alone in a run."""

    def one(fault: str = "", at: str = "", limits: Limits = limits, compiler: str = "faulty:Faulty") -> Result:
        (result,) = run([make_job("g", fault, at, compiler)], limits=limits)
        return result

    return one


@pytest.fixture
def evaluate_all(make_job: Callable[..., Job], limits: Limits) -> Callable[..., list[Result]]:
    """Evaluate jobs with (fault, stage) one after the other on one fork server."""

    def all_of(faults: list[tuple[str, str]], limits: Limits = limits) -> list[Result]:
        return list(run([make_job(f"g{i}", *fault) for i, fault in enumerate(faults)], limits=limits))

    return all_of


@pytest.fixture
def symbolic(make_graph: Callable[[str], Graph]) -> Graph:
    """y = 2 x on float32[batch, 8], batch = 4 unless bound."""
    return msgspec.structs.replace(
        make_graph("symbolic"),
        inputs=(Input(name="x", dtype="float32", shape=("batch", 8)),),
        values={"y": Value(dtype="float32", shape=("batch", 8))},
        dims={"batch": Dim(min=1, max=64, default=4)},
    )


def _double(name: str) -> Graph:
    return Graph(
        name=name,
        inputs=(Input(name="x", dtype="float32", shape=(4, 8)),),
        outputs=("y",),
        weights={"two": Weight(dtype="float32", shape=(), fill=Constant(value=2.0))},
        nodes=(Node(op="Mul", name="mul", inputs=("x", "two"), outputs=("y",)),),
        values={"y": Value(dtype="float32", shape=(4, 8))},
        flops=32,
    )
