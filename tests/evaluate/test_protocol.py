from __future__ import annotations

import os
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphnet.compilers import Target
from graphnet.evaluate.protocol import (
    Channel,
    Exited,
    Kill,
    Message,
    ProtocolError,
    Reader,
    Ready,
    Report,
    Samples,
    Turn,
    Work,
    encode,
    read_turns,
    write_all,
)

MESSAGES: list[Message] = [
    Work(graph=b"\x00\xff" * 1000, target=Target(options={"a": True}), budget_s=1.5, tolerance=-3, dims={"n": 4}),
    Kill(),
    Ready(versions={"torch": "2"}),
    Report(stage="run", quiet=True, samples=Samples(wall_ns=(1, 2**60), cpu_ns=())),
    Turn(seed=2**32 - 1, runs=5),
    Exited(status=-9, output="\N{SNOWMAN}\x00"),
]


@given(st.lists(st.integers(1, 700), max_size=30))
def test_any_cut_of_the_stream_gives_the_same_messages(sizes: list[int]) -> None:
    data = b"".join(map(encode, MESSAGES))
    reader, found = Reader(), []
    for size in [*sizes, len(data)]:
        found += list(reader.feed(data[:size]))
        data = data[size:]
    assert found == MESSAGES


@given(st.binary(min_size=6, max_size=64).filter(lambda data: data[:2] != b"GN"))
def test_foreign_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        list(Reader().feed(data))


@given(st.binary(max_size=100))
def test_frames_with_foreign_content_are_refused(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        list(Reader().feed(b"GN" + len(body).to_bytes(4, "big") + body))


def test_channel_both_ways_and_end() -> None:
    left, right = map(Channel, socket.socketpair())
    left.send(MESSAGES[1])
    right.send(MESSAGES[2])
    assert right.receive() == [MESSAGES[1]]
    assert left.receive() == [MESSAGES[2]]
    left.socket.close()
    assert right.receive() is None
    right.socket.close()


def test_pipe() -> None:
    read, write = os.pipe()
    write_all(write, MESSAGES[3])
    assert list(Reader().feed(os.read(read, 1 << 16))) == [MESSAGES[3]]
    os.close(read)
    os.close(write)


def test_turns_come_one_by_one_until_one_without_runs() -> None:
    read_end, write_end = os.pipe()
    turns = read_turns(read_end)
    for turn in (Turn(runs=5, seed=1), Turn(runs=1)):
        write_all(write_end, turn)
        assert next(turns) == turn
    write_all(write_end, Turn())
    assert list(turns) == []
    os.close(write_end)
    assert list(read_turns(read_end)) == [], "and at the end of the pipe"
    os.close(read_end)
