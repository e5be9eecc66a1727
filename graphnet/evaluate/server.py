"""The parent's handle on one compiler's fork server: start, send work, hear, kill, end, clean up after its death."""

from __future__ import annotations

import os
import secrets
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from graphnet.evaluate import procfs
from graphnet.evaluate.protocol import (
    PROTOCOL,
    Channel,
    Exited,
    Kill,
    Message,
    ProtocolError,
    Ready,
    Refused,
    Report,
    Started,
    Turn,
    Work,
)

MARKER = "GRAPHNET_SERVER"
"""Environment variable by which a server's processes are known after its death."""
_GRACE_S = 10.0
_SWEEPS = 400
_ENVIRONMENT = {
    "PYTHONHASHSEED": "0",
    "PYTHONUNBUFFERED": "1",
    "OPENBLAS_NUM_THREADS": "1",  # numpy's: it would start threads at import, before the server forks
}


class ServerDied(Exception):
    """The server ended or broke; the message says how."""


class ServerRefused(Exception):
    """The compiler cannot be loaded at all."""


class Server:
    """A running server. Use `start`."""

    def __init__(
        self, compiler: str, process: subprocess.Popen[bytes], channel: Channel, folder: Path, mark: str
    ) -> None:
        self.compiler, self.ready = compiler, Ready()
        self._process, self._channel, self._folder, self._mark = process, channel, folder, mark
        self._waiting: list[Message] = []
        self._serving = False
        self._job = 0

    @classmethod
    def start(cls, compiler: str, timeout_s: float, python: str = "") -> Server:
        """Start and wait for the framework's import, in the environment of the interpreter `python` if one is given.

        Raises ServerRefused, ServerDied (also when it takes too long).
        """
        folder = Path(tempfile.mkdtemp(prefix="graphnet-"))
        token = secrets.token_hex(8)
        ours, theirs = socket.socketpair()
        path = "" if python else f"sys.path[:] = {sys.path!r}; "
        boot = f"import sys; {path}from graphnet.evaluate import zygote; zygote.main(sys.argv[1:])"
        command = [python or sys.executable, "-c", boot, str(theirs.fileno()), compiler, str(folder)]
        with theirs, open(folder / "server.log", "wb") as log:
            try:
                process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=[theirs.fileno()],
                    env={**_inherited(python), **_ENVIRONMENT, MARKER: token}, start_new_session=True,
                )  # fmt: skip
            except OSError as error:
                ours.close()
                shutil.rmtree(folder, ignore_errors=True)
                raise ServerRefused(f"cannot start {command[0]}: {error.strerror or error}") from None
        server = cls(compiler, process, Channel(ours), folder, f"{MARKER}={token}")
        try:
            server._await_ready(timeout_s)
        except BaseException:
            server.close()
            raise
        return server

    @property
    def alive(self) -> bool:
        """Whether the process is there."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @contextmanager
    def cache_folder(self) -> Iterator[str]:
        """A new folder for caches of compiled code; it goes with the server at the latest, however we end."""
        folder = tempfile.mkdtemp(prefix="cache-", dir=self._folder)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def submit(self, work: Work) -> None:
        """Begin the next job. Raises ServerDied."""
        self._job += 1
        try:
            self._channel.send(msgspec.structs.replace(work, job=self._job))
        except OSError:
            raise ServerDied(self._obituary()) from None

    def give_turn(self, turn: Turn) -> None:
        """To the running job, which waits for it. Raises ServerDied."""
        try:
            self._channel.send(msgspec.structs.replace(turn, job=self._job))
        except OSError:
            raise ServerDied(self._obituary()) from None

    def kill_job(self) -> None:
        """Ask the server to kill the running job; `Exited` will follow. Nothing happens when there is none."""
        try:
            self._channel.send(Kill(job=self._job))
        except OSError:
            return  # dead: the next `hear` says so

    def hear(self, timeout_s: float) -> Message | None:
        """The next message of the running job or the server, or None after `timeout_s`. Raises ServerDied."""
        end = time.monotonic() + timeout_s
        while not self._waiting:
            left = end - time.monotonic()
            if not select.select([self._channel], [], [], max(0.0, left))[0]:
                return None
            try:
                received = self._channel.receive()
            except ProtocolError as error:
                raise ServerDied(f"the fork server of '{self.compiler}' sent {error}") from None
            if received is None:
                raise ServerDied(self._obituary())
            self._waiting += [message for message in received if not self._is_late(message)]
        return self._waiting.pop(0)

    def _is_late(self, message: Message) -> bool:
        return isinstance(message, Started | Report | Exited) and message.job != self._job

    def close(self) -> None:
        """End the server and everything that it ever started, and remove its folder."""
        self._channel.socket.close()
        try:
            self._process.wait(_GRACE_S if self._serving else 0.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for _ in range(_SWEEPS):  # nobody, unless the server was killed: it takes its own along
            left = procfs.marked(self._mark)
            if not left:
                break
            procfs.kill(left)
            time.sleep(0.005)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _await_ready(self, timeout_s: float) -> None:
        message = self.hear(timeout_s)
        if isinstance(message, Refused):
            raise ServerRefused(message.message)
        if not isinstance(message, Ready):
            raise ServerDied(f"importing '{self.compiler}' took more than {timeout_s:g} s: {self._log()}")
        if message.protocol != PROTOCOL:
            raise ServerRefused(
                f"the environment of '{self.compiler}' has another GraphNet ({message.protocol or 'older'}, ours is"
                f" {PROTOCOL}): install this version there too"
            )
        self.ready, self._serving = message, True

    def _obituary(self) -> str:
        try:
            status = self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            return f"the fork server of '{self.compiler}' closed its channel"
        how = f"signal {-status}" if status < 0 else f"status {status}"
        return f"the fork server of '{self.compiler}' ended with {how}. {self._log()}".strip()

    def _log(self) -> str:
        try:
            data = (self._folder / "server.log").read_bytes()[-1000:]
        except OSError:
            return ""
        return data.decode("utf-8", "replace").strip()


def _inherited(python: str) -> dict[str, str]:
    """Our environment variables; another interpreter's environment must not find our packages by them."""
    ours = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV") if python else ()
    return {name: value for name, value in os.environ.items() if name not in ours}
