"""The process of a MetaSchedule search: kernels of a folder come in, what beats them goes to `found/` (see `tune`)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from tvm import tirx
from tvm.s_tir import meta_schedule as ms

from graphnet.compilers.tvm.contract import ACCUMULATE, Registers
from graphnet.compilers.tvm.math import use_vector_math
from graphnet.compilers.tvm.schedule import sampled_contraction, schedule
from graphnet.compilers.tvm.target import flush_subnormals, registers, set_threads
from graphnet.ir.fileio import write_atomic

BATCH = 4
"""Candidates that a kernel tries before another has its turn."""
ROUNDS = 7
"""Alternate runs of candidate and best before the candidate may win."""
GAIN = 0.97
"""A candidate wins if its median time is below so much of the best one's."""
RUN_SECONDS = 0.01
TOLERANCE = 1e-4
"""Largest difference from our kernel's results, relative to their largest number."""
_TRIALS = 1 << 20


class Built:
    """A kernel ready to run on tensors of its own."""

    def __init__(self, function: tirx.PrimFunc, target: tvm.target.Target, arguments: Sequence[Any]) -> None:
        module = tvm.IRModule({"main": function.with_attr("global_symbol", "main")})
        self._library = tvm.compile(module, target)
        self._run = self._library["main"]
        self._arguments = arguments

    def outputs(self) -> list[np.ndarray]:
        """What it writes: all its arguments afterwards."""
        self._run(*self._arguments)
        return [argument.numpy() for argument in self._arguments]

    def seconds(self) -> float:
        """Of one run, over about RUN_SECONDS."""
        start, runs = time.perf_counter(), 0
        while (spent := time.perf_counter() - start) < RUN_SECONDS or not runs:
            self._run(*self._arguments)
            runs += 1
        return spent / runs if spent else 0.0


class Task:
    """A kernel, the best schedule of it so far, and a search for better ones."""

    def __init__(
        self, name: str, function: tirx.PrimFunc, target: tvm.target.Target, best: tirx.PrimFunc | None, seed: int
    ) -> None:
        found = registers(target)
        self.name, self.tried = name, 0
        self._target = target
        self._arguments = [_argument(buffer, index) for index, buffer in enumerate(function.params)]
        ours = Built(schedule(function, found)[0], target, self._arguments)
        self._expected = ours.outputs()
        self._best = Built(best, target, self._arguments) if best is not None else ours
        self._best.seconds()
        self.best_s = min(self._best.seconds() for _ in range(3))
        self._space = (function, target, found, seed)
        self._database = ms.database.MemoryDatabase()

    def begin(self) -> None:
        """Make the design space. Raises what MetaSchedule raises."""
        self._search = _search(*self._space)
        self._search.pre_tuning(
            max_trials=_TRIALS, num_trials_per_iter=BATCH, design_spaces=self._search.generate_design_space(),
            database=self._database, cost_model=ms.cost_model.RandomModel(),
        )  # fmt: skip

    def step(self, note: Callable[[str], None]) -> tirx.PrimFunc | None:
        """Try a batch; the best function if one of the batch beat the former."""
        candidates = self._search.generate_measure_candidates() or []
        results, winner = [], None
        for candidate in candidates:
            note(self.name)
            self.tried += 1
            try:
                taken = self._measure(candidate.sch.mod["main"])
            except Exception as error:  # what a random schedule makes of the code generator
                results.append(ms.runner.RunnerResult(None, str(error)[:200]))
                continue
            results.append(ms.runner.RunnerResult([taken[0]], None))
            self._commit(candidate, taken[0])
            if taken[1]:
                winner = candidate.sch.mod["main"]
        if candidates:
            self._search.notify_runner_results(candidates, results)
        return winner

    def _measure(self, function: tirx.PrimFunc) -> tuple[float, bool]:
        """Seconds of a run and whether it is the new best one."""
        built = Built(function, self._target, self._arguments)
        if not _agree(self._expected, built.outputs()):
            raise ValueError("other results")
        first = built.seconds()
        if first > 1.2 * self.best_s:
            return first, False
        pairs = np.array([(self._best.seconds(), built.seconds()) for _ in range(ROUNDS)])
        best, mine = np.median(pairs, axis=0)
        self.best_s = float(min(best, mine))
        if mine >= GAIN * best:
            return float(mine), False
        self._best = built
        return float(mine), True

    def _commit(self, candidate: Any, seconds: float) -> None:
        workload = self._database.commit_workload(self._search.mod)
        self._database.commit_tuning_record(
            ms.database.TuningRecord(candidate.sch.trace, workload, [seconds], self._target, candidate.args_info)
        )


def main(path: str) -> None:
    """Search until killed, or until no kernel has anything left to try."""
    folder = Path(path)
    request = json.loads((folder / "request.json").read_text())
    target = tvm.target.Target({**tvm.ir.load_json(request["target"]).export(), "num-cores": request["threads"]})
    use_vector_math(True)
    flush_subnormals()
    set_threads(request["threads"])
    (folder / "found").mkdir(exist_ok=True)
    kernels = tvm.ir.load_json((folder / "kernels.json").read_text())
    tasks = _tasks(folder, kernels, target, request)
    with (folder / "tried").open("a") as log:

        def note(name: str) -> None:
            log.write(f"{name}\n")
            log.flush()

        while tasks:
            task = max(tasks, key=lambda task: request["calls"][task.name] * task.best_s / (1 + task.tried))
            try:
                if not task.tried:
                    task.begin()
                before = task.tried
                winner = task.step(note)
            except Exception as error:  # a kernel that no rule can make a design space of
                print(f"{task.name}: {error}")  # noqa: T201 (kept by the parent)
                tasks.remove(task)
                continue
            if winner is not None:
                found = winner.without_attr("global_symbol").with_attr("tirx.is_scheduled", True)
                text = tvm.ir.save_json(tvm.IRModule({"main": found}))
                write_atomic(folder / "found" / f"{task.name}.json", text.encode())
            if task.tried == before:
                tasks.remove(task)


def _tasks(folder: Path, kernels: tvm.IRModule, target: tvm.target.Target, request: dict[str, Any]) -> list[Task]:
    tasks = []
    for variable, function in kernels.functions_items():
        name = str(variable.name_hint)
        if name not in request["calls"] or not _is_static(function):
            continue
        file = folder / "found" / f"{name}.json"
        best = tvm.ir.load_json(file.read_text())["main"] if file.exists() else None
        tasks.append(Task(name, function, target, best, request["seed"]))
    return tasks


def _search(function: tirx.PrimFunc, target: tvm.target.Target, found: Registers, seed: int) -> ms.TuneContext:
    rules = {"sch_rules": "llvm", "postprocs": "llvm", "mutator_probs": "llvm"}
    space: Any = ms.space_generator.PostOrderApply(**rules)
    if f'"{ACCUMULATE}"' in function.script():
        space = ms.space_generator.ScheduleFn(
            lambda sampled: sampled_contraction(sampled, found), sch_rules=[], postprocs=[],
            mutator_probs={ms.mutator.MutateTileSize(): 1.0},
        )  # fmt: skip
    return ms.TuneContext(
        tvm.IRModule({"main": function.with_attr("global_symbol", "main")}), target=target, space_generator=space,
        search_strategy=ms.search_strategy.EvolutionarySearch(
            population_size=32, init_measured_ratio=0.5, init_min_unmeasured=8
        ),
        task_name="kernel", num_threads=1, rand_state=seed,
    )  # fmt: skip


def _is_static(function: tirx.PrimFunc) -> bool:
    """Whether all it takes are buffers of known shape."""
    shapes = [getattr(parameter, "shape", None) for parameter in function.params]
    return all(shape is not None and all(isinstance(size, tirx.IntImm) for size in shape) for shape in shapes)


def _argument(buffer: Any, seed: int) -> Any:
    shape, dtype = [int(size) for size in buffer.shape], str(buffer.dtype)
    is_float = dtype in ("float16", "float32", "float64")
    array = np.random.default_rng(seed).standard_normal(shape) if is_float else np.zeros(shape)
    return tvm.runtime.tensor(array.astype("int8" if dtype == "bool" else dtype).astype(dtype), tvm.cpu())


def _agree(expected: Sequence[np.ndarray], found: Sequence[np.ndarray]) -> bool:
    for ours, theirs in zip(expected, found, strict=True):
        scale = float(np.nanmax(np.abs(ours.astype(np.float64)), initial=0.0))
        if not np.allclose(ours, theirs, rtol=0.0, atol=TOLERANCE * scale, equal_nan=True):
            return False
    return True
