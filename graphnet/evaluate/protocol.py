"""Messages between the parent, a compiler's fork server and the child that runs one job; length-prefixed msgpack."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import msgspec

from graphnet.compilers import CachePolicy, Kernel, Target
from graphnet.evaluate.records import CompileTime, Memory, OutputError, Stage, Verdict

PROTOCOL = "graphnet-protocol/1"
_MAGIC = b"GN"
HEADER_BYTES = 6
MAX_FRAME_BYTES = 1 << 31


class _Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    pass


class _OfJob(_Message, frozen=True, kw_only=True):
    job: int = 0
    """Number of the job on its server: a late message of one job is not taken for the next one's."""


class CodePlace(_Message, frozen=True, kw_only=True):
    """A folder for the code of one job, and what its index tells of the job."""

    folder: str
    job_key: str
    graph: str
    compiler: str


class Work(_OfJob, frozen=True, kw_only=True, tag="work"):
    """Parent to server: fork a child for this job."""

    graph: bytes
    """The graph as JSON, without the places of sidecars."""
    sidecar: str = ""
    """Path of the safetensors file that holds the weights of fill `file`."""
    target: Target
    dims: dict[str, int] = {}
    seed: int = 0
    tolerance: int
    budget_s: float = 0.0
    """Seconds of warm-up, at most."""
    profile: bool = True
    reference: str = ""
    """File with the reference outputs to check against; for an oracle job, the file to write them to."""
    oracle: bool = False
    """Compute reference outputs and write them, do not time anything."""
    probe: bool = False
    """Only configure the compiler for the target's device."""
    before: tuple[bytes, ...] = ()
    """Only compare: the graphs before each of `passes`, `graph` being the last result."""
    passes: tuple[str, ...] = ()
    code: CodePlace | None = None
    """Where the code of the kernels goes; None when it was not asked for."""
    cache: str = ""
    """Folder for caches of compiled code, which outlives the job; without it they go with the job's own folder."""
    compile_only: bool = False
    """Only compile and run once, with the compiler's cache switched on, whether it is so by default or not."""
    output_names: tuple[str, ...] = ()
    """Names of the outputs in the record (those of the graph before passes)."""


class Turn(_OfJob, frozen=True, kw_only=True, tag="turn"):
    """Parent to child (through the server): a block of timed runs."""

    seed: int = 0
    """Decides where the buffers of the inputs are placed."""
    runs: int = 0
    """Samples to take; no turn takes fewer than one. 0 says that there are no more turns."""
    least_ns: int = 0
    """Take more samples, up to twenty times as many, until so much time is spent on them ..."""
    most_ns: int = 0
    """... but none after this time."""
    rewarm_ns: int = 0
    """Run for so long before the timed runs, at least once unless it is 0: other programs had the caches."""


class Kill(_OfJob, frozen=True, kw_only=True, tag="kill"):
    """Parent to server: kill the job's child and everything that it started."""


class Ready(_Message, frozen=True, kw_only=True, tag="ready"):
    """Server to parent: the framework is imported."""

    protocol: str = ""
    """`PROTOCOL` of the server's GraphNet, which may be that of another environment."""
    versions: dict[str, str] = {}
    devices: tuple[str, ...] = ("cpu",)
    """Devices that the compiler has code for."""
    cache: CachePolicy = "none"
    threads: int = 1
    """Threads of the server process after the import; more than 1 makes forking risky."""
    preload_s: float = 0.0


class Refused(_Message, frozen=True, kw_only=True, tag="refused"):
    """Server to parent: the compiler cannot be loaded; the server ends."""

    message: str


class Started(_OfJob, frozen=True, kw_only=True, tag="started"):
    """Server to parent: the child was forked."""

    pid: int


class WarmUp(_Message, frozen=True, kw_only=True):
    """A child that is ready to be timed. Nanoseconds."""

    times_ns: tuple[int, ...]
    steady: bool
    inner_loops: int
    buffer_seed: int
    noise_ns: tuple[int, ...]
    """The fixed-work loop, before the first turn."""


class Samples(_Message, frozen=True, kw_only=True):
    """What a turn gave. Nanoseconds per inference, wall and process CPU time."""

    wall_ns: tuple[int, ...]
    cpu_ns: tuple[int, ...]


class Report(_OfJob, frozen=True, kw_only=True, tag="report"):
    """Child to parent (through the server): what is known so far. Later reports replace fields that they carry."""

    stage: Stage | None = None
    """The stage that begins now."""
    quiet: bool = False
    """Warm-up begins: the parent must not disturb the child until the next report."""
    waiting: bool = False
    """The child does nothing until it is given a turn; the server suspends it and all that it started."""
    warm_up: WarmUp | None = None
    samples: Samples | None = None
    """Of the turn that is over."""
    noise_ns: tuple[int, ...] | None = None
    """The fixed-work loop, after the last turn."""
    verdict: Verdict | None = None
    failed_stage: Stage | None = None
    message: str | None = None
    notes: tuple[str, ...] = ()
    """Added to the notes of earlier reports."""
    flops: int | None = None
    bytes: int | None = None
    settings: dict[str, str | int | float | bool] | None = None
    compile: CompileTime | None = None
    memory: Memory | None = None
    outputs: tuple[OutputError, ...] | None = None
    level: int | None = None
    kernels: tuple[Kernel, ...] | None = None
    done: bool = False
    """The verdict stands; what follows (profiling) can only add to it."""


class Exited(_OfJob, frozen=True, kw_only=True, tag="exited"):
    """Server to parent: the child and all its descendants are gone."""

    status: int
    """As of `os.waitstatus_to_exitcode`: negative for a signal."""
    output: str = ""
    """The last lines that the child printed."""
    protocol_error: str = ""
    left_processes: int = 0
    """Descendants that outlived the child and were killed."""


Message = Work | Turn | Kill | Ready | Refused | Started | Report | Exited

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(Message)


class ProtocolError(Exception):
    """Bytes that are not ours arrived on a channel."""


def encode(message: Message) -> bytes:
    """A frame: `GN`, four bytes of length (big-endian), msgpack."""
    body = _encoder.encode(message)
    return _MAGIC + len(body).to_bytes(4, "big") + body


class Reader:
    """Cuts a byte stream into messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Message]:
        """Messages that are complete now. Raises ProtocolError."""
        self._buffer += data
        while len(self._buffer) >= HEADER_BYTES:
            size = int.from_bytes(self._buffer[2:HEADER_BYTES], "big")
            if self._buffer[:2] != _MAGIC or size > MAX_FRAME_BYTES:
                raise ProtocolError(f"unexpected bytes {bytes(self._buffer[:16])!r}")
            if len(self._buffer) < HEADER_BYTES + size:
                return
            body = bytes(self._buffer[HEADER_BYTES : HEADER_BYTES + size])
            del self._buffer[: HEADER_BYTES + size]
            try:
                message = _decoder.decode(body)
            except (msgspec.DecodeError, ValueError, RecursionError) as error:
                raise ProtocolError(str(error)) from None
            yield message


class Channel:
    """A blocking stream socket that carries messages both ways."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        self._reader = Reader()

    def fileno(self) -> int:
        """For `select`."""
        return self.socket.fileno()

    def send(self, message: Message) -> None:
        """Raises OSError (the peer is gone)."""
        self.socket.sendall(encode(message))

    def receive(self) -> list[Message] | None:
        """Messages that one read completes (maybe none yet); None at the end of the stream. Raises ProtocolError."""
        try:
            data = self.socket.recv(1 << 20)
        except ConnectionError:
            return None
        return list(self._reader.feed(data)) if data else None


def write_all(descriptor: int, message: Message) -> None:
    """Write one frame to a pipe. Raises OSError."""
    view = memoryview(encode(message))
    while view:
        view = view[os.write(descriptor, view) :]


def read_turns(descriptor: int) -> Iterator[Turn]:
    """Turns from a pipe, as they come, until one without runs; ends with the pipe too. Raises ProtocolError."""
    reader = Reader()
    while data := os.read(descriptor, 1 << 16):
        for message in reader.feed(data):
            if not isinstance(message, Turn) or not message.runs:
                return
            yield message
