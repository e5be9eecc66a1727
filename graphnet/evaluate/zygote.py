"""The fork server of one compiler: imports the framework once, then forks one child per job and cleans up after it.

Run as `python -m graphnet.evaluate.zygote FD COMPILER FOLDER`. It is a process of its own session that adopts orphans
(subreaper), so everything a job starts stays among its descendants and dies with the job. It ends, with all of them,
when the parent's end of the socket FD closes, however the parent died.
"""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import select
import shutil
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import NoReturn

import msgspec

from graphnet import compilers
from graphnet.errors import GraphNetError
from graphnet.evaluate import procfs, worker
from graphnet.evaluate.protocol import (
    PROTOCOL,
    Channel,
    Exited,
    Kill,
    Message,
    ProtocolError,
    Reader,
    Ready,
    Refused,
    Report,
    Started,
    Turn,
    Work,
    read_turns,
    write_all,
)  # fmt: skip

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_OUTPUT_BYTES = 1 << 14
"""How much of the end of a child's printed output is kept."""
_libc = ctypes.CDLL(None, use_errno=True)


def main(arguments: list[str]) -> None:
    """Serve until the parent is gone."""
    descriptor, name, folder = int(arguments[0]), arguments[1], Path(arguments[2])
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    channel = Channel(socket.socket(fileno=descriptor))
    os.set_inheritable(descriptor, False)
    try:
        compiler = _preload(channel, name)
        if compiler is not None:
            _Server(channel, compiler, folder).serve()
    except (BrokenPipeError, ConnectionError):
        pass
    finally:
        _kill_descendants()
        shutil.rmtree(folder, ignore_errors=True)


def _preload(channel: Channel, name: str) -> compilers.Compiler | None:
    begin = time.monotonic()
    try:
        compiler = compilers.get(name)
        compiler.preload()
    except GraphNetError as error:
        channel.send(Refused(message=str(error)))
        return None
    except Exception as error:
        channel.send(Refused(message=f"compiler '{name}' cannot be loaded: {type(error).__name__}: {error}"))
        return None
    gc.collect()
    gc.freeze()
    channel.send(
        Ready(
            protocol=PROTOCOL,
            versions=compilers.versions(compiler),
            devices=tuple(getattr(compiler, "devices", ("cpu",))),
            cache=compilers.cache_policy(compiler),
            threads=procfs.thread_count(),
            preload_s=time.monotonic() - begin,
        )
    )
    return compiler


class _Server:
    """Waits for work; has at most one child."""

    def __init__(self, channel: Channel, compiler: compilers.Compiler, folder: Path) -> None:
        self._channel, self._compiler, self._folder = channel, compiler, folder

    def serve(self) -> None:
        while True:
            messages = self._channel.receive()
            if messages is None:
                return
            for message in messages:
                if isinstance(message, Work):
                    _Child(self._channel, self._compiler, self._folder, message).supervise()


class _Child:
    """One job's process: relays its reports and turns, keeps the end of its output, leaves nothing of it behind.

    While it waits for a turn, it and all that it started are stopped: no thread of a pool spins beside other programs.
    """

    def __init__(self, channel: Channel, compiler: compilers.Compiler, folder: Path, work: Work) -> None:
        self._channel, self._job = channel, work.job
        self._folder = Path(tempfile.mkdtemp(prefix="job-", dir=folder))
        self._reports, report_end = os.pipe()
        self._printed, print_end = os.pipe()
        turn_end, self._turns = os.pipe()
        server = os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            for descriptor in (self._reports, self._printed, self._turns):
                os.close(descriptor)
            _become_child(server, channel, turn_end, report_end, print_end, self._folder, compiler, work)
        for descriptor in (report_end, print_end, turn_end):
            os.close(descriptor)
        self._handle = os.pidfd_open(self._pid)
        for descriptor in (self._reports, self._printed):
            os.set_blocking(descriptor, False)
        self._reader, self._output, self._error = Reader(), bytearray(), ""

    def supervise(self) -> None:
        """Until the child has ended. Raises ConnectionError when the parent is gone."""
        try:
            self._channel.send(Started(job=self._job, pid=self._pid))
            self._relay()
        finally:
            left = self._clean_up()
        self._drain(self._printed)
        for descriptor in (self._reports, self._printed, self._turns, self._handle):
            os.close(descriptor)
        output = self._output.decode("utf-8", "replace")
        self._channel.send(
            Exited(
                job=self._job, status=self._status, output=output, protocol_error=self._error, left_processes=left
            )
        )  # fmt: skip

    def _relay(self) -> None:
        poll = select.poll()
        for descriptor in (self._channel.fileno(), self._reports, self._printed, self._handle):
            poll.register(descriptor, select.POLLIN)
        while True:
            ready = {descriptor for descriptor, _ in poll.poll()}
            if self._printed in ready and not self._drain(self._printed):
                poll.unregister(self._printed)
            if self._reports in ready and not self._drain(self._reports):
                poll.unregister(self._reports)
            if self._channel.fileno() in ready:
                messages = self._channel.receive()
                if messages is None:
                    raise ConnectionError("the parent is gone")
                for message in messages:
                    self._obey(message)
            if self._handle in ready:
                self._drain(self._reports)
                return

    def _obey(self, message: Message) -> None:
        if isinstance(message, Kill) and message.job == self._job:
            os.kill(self._pid, signal.SIGKILL)
        elif isinstance(message, Turn) and message.job == self._job:
            self._signal(signal.SIGCONT)
            try:
                write_all(self._turns, message)
            except BrokenPipeError:
                return  # it has ended, and we are about to hear of that

    def _suspend(self) -> None:
        """Returns when the child has stopped, all its threads included, or has ended."""
        self._signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self._pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def _signal(self, number: signal.Signals) -> None:
        """To the child and everything that it started."""
        for pid in (*procfs.descendants(self._pid), self._pid):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue

    def _drain(self, descriptor: int) -> bool:
        """Take what is in a pipe; False at its end."""
        while True:
            try:
                data = os.read(descriptor, 1 << 16)
            except BlockingIOError:
                return True
            if not data:
                return False
            if descriptor == self._printed:
                self._output += data
                del self._output[:-_OUTPUT_BYTES]
                return True  # a child that prints without end must not keep us from its reports
            self._forward(data)

    def _forward(self, data: bytes) -> None:
        if self._error:
            return
        try:
            for message in self._reader.feed(data):
                if isinstance(message, Report) and message.waiting:
                    self._suspend()
                self._channel.send(message)
        except ProtocolError as error:
            self._error = str(error)
            os.kill(self._pid, signal.SIGKILL)  # what it says cannot be heard any more: it would wait for ever

    def _clean_up(self) -> int:
        """Kill and reap the child's session and every other descendant; returns how many outlived the child."""
        os.kill(self._pid, signal.SIGKILL)
        _, status = os.waitpid(self._pid, 0)
        self._status = os.waitstatus_to_exitcode(status)
        left = _kill_descendants()
        shutil.rmtree(self._folder, ignore_errors=True)
        return left


def _kill_descendants() -> int:
    """SIGKILL to all descendants until none is left; returns how many lived. Orphans come to us (subreaper)."""
    count = 0
    while _reap():
        living = procfs.descendants(os.getpid())
        count = max(count, len(living))
        procfs.kill(living)
        time.sleep(0.001)
    return count


def _reap() -> bool:
    """Collect every child that has ended; False when there is no child left."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True


def _become_child(
    server: int, channel: Channel, turn_end: int, report_end: int, print_end: int, folder: Path,
    compiler: compilers.Compiler, work: Work,
) -> NoReturn:  # fmt: skip
    """Never returns; ends by `os._exit`, so no handler that the server or the framework registered runs."""
    status = 1
    try:
        os.setsid()
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != server:
            os._exit(1)
        os.close(channel.fileno())
        with open(os.devnull, "rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        os.dup2(print_end, 1)
        os.dup2(print_end, 2)
        os.close(print_end)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _prefer_for_oom_kill()
        os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
        os.chdir(folder)
        worker.run(
            compiler, work, lambda report: write_all(report_end, msgspec.structs.replace(report, job=work.job)),
            read_turns(turn_end),
        )  # fmt: skip
        sys.stdout.flush()
        sys.stderr.flush()
        status = 0
    finally:
        os._exit(status)


def _prefer_for_oom_kill() -> None:
    """The kernel shall take the job before anything else of the user's."""
    try:
        Path("/proc/self/oom_score_adj").write_text("1000")
    except OSError:
        return


if __name__ == "__main__":
    main(sys.argv[1:])
