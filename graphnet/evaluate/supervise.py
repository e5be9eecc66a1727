"""Watching one job: time and memory limits, and what its end means as a verdict."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import Any

import msgspec

from graphnet.evaluate import procfs
from graphnet.evaluate.plan import Limits
from graphnet.evaluate.protocol import Exited, Report, Samples, Started, Turn, WarmUp, Work
from graphnet.evaluate.records import Memory, Stage, Verdict
from graphnet.evaluate.server import Server, ServerDied

_BUSY_POLL_S = 0.05
_QUIET_POLL_S = 0.5
"""Memory is looked at this often; seldom in timed runs, where it takes 20 microseconds from another process."""
_KILL_WAIT_S = 30.0
_TIMELINE_MAX = 400
_MEMORY_SHARE = 0.9
_OUTPUT_SHOWN = 400


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known when a job is over: `fields` are those of a Result that the child reported."""

    verdict: Verdict
    stage: Stage | None
    message: str
    notes: tuple[str, ...]
    fields: dict[str, Any]
    memory: Memory | None
    wall_s: float


def watch(server: Server, work: Work, limits: Limits) -> Outcome:
    """Run `work`, which has no turns to wait for, to its end, whatever that is.

    Raises only KeyboardInterrupt and its like, after killing the job.
    """
    job = Watched(server, work, limits)
    job.start()
    return job.outcome()


class Watched:
    """A job as its reports and its memory show it: started, given turns, finished.

    Each step returns when the job waits for its next turn or has ended, however it did; it must not be given a step
    after that. A server that broke on it is closed. A step raises only KeyboardInterrupt and its like, after killing
    the job.
    """

    def __init__(self, server: Server, work: Work, limits: Limits) -> None:
        self._server, self._work, self._limits = server, work, limits
        self._began = self._stage_began = time.monotonic()
        self._active_s = 0.0
        self._oom_kills = procfs.oom_kills()
        self.pid = 0
        self.warm_up: WarmUp | None = None
        self.noise_ns: tuple[int, ...] = ()
        self.ended = False
        """The child is gone."""
        self._waiting = False
        self._samples: Samples | None = None
        self._stage: Stage = "load"
        self._quiet = self._done = False
        self._fields: dict[str, Any] = {}
        self._notes: list[str] = []
        self._verdict: Verdict | None = None
        self._failed_stage: Stage | None = None
        self._message = ""
        self._memory: Memory | None = None
        self._timeline: list[tuple[float, int, Stage]] = []
        self._killed_at = self._stage_spent = 0.0
        self._held = 0
        self.short_of_memory = False
        """It passed its limit of memory, or was killed for want of it, while others kept some."""

    def start(self, held_bytes: int = 0) -> None:
        """Until it waits for its first turn. `held_bytes` is memory that others keep meanwhile."""
        self._step(lambda: self._server.submit(self._work), held_bytes)

    def turn(self, turn: Turn, held_bytes: int = 0) -> tuple[Samples, int] | None:
        """One block of timed runs, and how long it took in nanoseconds; None when the job has ended instead."""
        self._samples = None
        begin = time.perf_counter_ns()
        self._quiet = True
        self._step(lambda: self._server.give_turn(turn), held_bytes)
        spent = time.perf_counter_ns() - begin
        return (self._samples, spent) if self._samples and not self.ended else None

    def finish(self, held_bytes: int = 0) -> None:
        """There are no more turns: what comes after them."""
        self._step(lambda: self._server.give_turn(Turn()), held_bytes)

    def _step(self, action: Callable[[], None], held_bytes: int) -> None:
        self._held, self._waiting, began = held_bytes, False, time.monotonic()
        self._stage_began = began - self._stage_spent
        try:
            action()
            while not (self._waiting or self.ended):
                self._hear()
        except ServerDied as error:
            self.ended = True
            self._conclude("crashed", str(error))
            self._server.close()  # it may still be busy with this job, or out of step with us
        except BaseException:
            self._server.kill_job()
            raise
        now = time.monotonic()
        self._active_s += now - began
        self._stage_spent = now - self._stage_began

    def _hear(self) -> None:
        message = self._server.hear(_QUIET_POLL_S if self._quiet else _BUSY_POLL_S)
        if isinstance(message, Started):
            self.pid = message.pid
        elif isinstance(message, Report):
            self._take(message)
        elif isinstance(message, Exited):
            self._end(message)
            self.ended = True
            return
        self._enforce()

    def outcome(self) -> Outcome:
        """What is known so far."""
        verdict = self._verdict or "crashed"
        return Outcome(
            verdict=verdict, stage=None if verdict == "ok" else (self._failed_stage or self._stage),
            message=self._message, notes=tuple(self._notes), fields=self._fields, memory=self._memory_record(),
            wall_s=self._active_s,
        )  # fmt: skip

    def _take(self, report: Report) -> None:
        self._quiet, self._waiting = report.quiet, report.waiting
        self.warm_up, self._samples = report.warm_up or self.warm_up, report.samples or self._samples
        self.noise_ns = report.noise_ns or self.noise_ns
        self._notes += report.notes
        if report.stage is not None:
            self._stage, self._stage_began = report.stage, time.monotonic()
        if report.memory is not None:
            self._memory = report.memory
        if report.verdict is not None and self._verdict is None:
            self._verdict, self._failed_stage = report.verdict, report.failed_stage
            self._message = report.message or ""
            self.short_of_memory = report.verdict == "out_of_memory" and self._held > 0
        self._done = self._done or report.done
        for name in ("flops", "bytes", "settings", "compile", "outputs", "level", "kernels"):
            value = getattr(report, name)
            if value is not None:
                self._fields[name] = value

    def _end(self, exited: Exited) -> None:
        output = exited.output.strip()[-_OUTPUT_SHOWN:]
        if exited.left_processes:
            self._notes.append(f"{exited.left_processes} processes that the job left behind were killed")
        if exited.protocol_error:
            self._notes.append(f"the child wrote on the report channel: {exited.protocol_error}")
        if self._done and (exited.status == 0 or self._killed_at):
            return
        self._conclude(*self._cause(exited.status), output)

    def _cause(self, status: int) -> tuple[Verdict, str]:
        if status == -signal.SIGKILL and procfs.oom_kills() > self._oom_kills:
            return "out_of_memory", "killed by the kernel for want of memory"
        if status < 0:
            return "crashed", f"killed by {_signal_name(-status)}"
        return "crashed", f"ended with status {status} and without a result"

    def _conclude(self, verdict: Verdict, message: str, output: str = "") -> None:
        """Set the verdict, unless one stands: then what happened to the child is a note."""
        if self._verdict is not None:
            if not self._killed_at:
                self._notes.append(f"after its verdict, the job {message}")
            return
        self.short_of_memory = verdict == "out_of_memory" and self._held > 0
        self._verdict, self._failed_stage = verdict, self._stage
        self._message = f"{message}; it printed: {output}" if output else message

    def _enforce(self) -> None:
        if self._killed_at:
            if time.monotonic() - self._killed_at > _KILL_WAIT_S:
                raise ServerDied("the job could not be killed")
            return
        self._check_memory()
        spent = time.monotonic() - self._stage_began
        limit = self._stage_limit()
        if spent > limit:
            self._kill("timeout", f"{self._stage} took more than {limit:g} s")

    def _check_memory(self) -> None:
        if not self.pid:
            return
        size = procfs.resident_bytes(self.pid)
        if not size:
            return
        if not self._quiet:
            size += sum(procfs.resident_bytes(pid) for pid in procfs.descendants(self.pid))
        self._timeline.append((time.monotonic() - self._began, size, self._stage))
        if len(self._timeline) > _TIMELINE_MAX:
            del self._timeline[1::2]
        left = int(_MEMORY_SHARE * procfs.memory_limit_bytes()) - self._held
        limit = min(left, self._limits.memory_bytes or left)
        if size > limit:
            self._kill(
                "out_of_memory", f"resident memory {size / 2**30:.2f} GiB passed the limit {limit / 2**30:.2f} GiB"
            )

    def _stage_limit(self) -> float:
        limits = self._limits
        by_stage = {"load": limits.load_s, "run": limits.run_s, "check": limits.check_s}
        return by_stage.get(self._stage, limits.compile_s)

    def _kill(self, verdict: Verdict, message: str) -> None:
        if self._done:
            self._notes.append(f"what came after the verdict was stopped: {message}")
        else:
            self._conclude(verdict, message)
        self._killed_at = time.monotonic()
        self._server.kill_job()

    def _memory_record(self) -> Memory | None:
        """The child's own peaks; where it did not live to tell one, the largest size that was seen."""
        known = self._memory or Memory()
        seen = {"load": known.load_peak, "compile": known.compile_peak, "run": known.run_peak}
        for _, size, stage in self._timeline:
            if stage in seen and not getattr(known, f"{stage}_peak"):
                seen[stage] = max(seen[stage], size)
        if not self._timeline and self._memory is None:
            return None
        return msgspec.structs.replace(
            known, baseline=known.baseline or (self._timeline[0][1] if self._timeline else 0),
            load_peak=seen["load"], compile_peak=seen["compile"], run_peak=seen["run"],
            timeline=tuple((round(at, 3), size) for at, size, _ in self._timeline),
        )  # fmt: skip


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
