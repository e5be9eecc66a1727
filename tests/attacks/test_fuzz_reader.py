"""Fuzzing the reader: whatever the bytes, it answers with a graph or a GraphFormatError, soon and in little memory.

Short by default. `GRAPHNET_FUZZ_SECONDS=600 pytest -m slow tests/attacks/test_fuzz_reader.py` runs the long one, in a
child process whose memory is limited, so that a leak or a bomb shows as MemoryError.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import resource
import time
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from graphnet.errors import GraphFormatError
from graphnet.ir import dims, fileio
from graphnet.ir.graph import Graph

MEMORY = 512 << 20
"""Bytes of address space that the long run may take beyond what it starts with."""
SECONDS = 2.0
"""CPU seconds that one input may take."""

SEED: dict[str, Any] = {
    "format": "graphnet/1", "name": "seed", "graph_id": "GN-2026-CV-001", "domain": "vision", "tier": "kernel",
    "opset": 23,
    "source": {"package": "p", "config": {"a": 1, "b": 1.5, "c": "d", "e": True}, "max_error": 1e-6},
    "input_shapes": [["n", 4]], "dims": {"n": {"min": 1, "max": 8, "default": 2}},
    "operator_count": 3, "operator_distribution": {"relu": 1}, "flops": 10, "arithmetic_intensity": 0.5,
    "inputs": [{"name": "x", "dtype": "float32", "shape": ["n", 4], "fill": {"kind": "normal", "std": 2.0, "min": -3}},
               {"name": "i", "dtype": "int64", "shape": ["n"], "fill": {"kind": "uniform", "low": 0, "high": "n-1"}}],
    "outputs": ["y"],
    "weights": {
        "w": {"dtype": "float32", "shape": [4, 4], "fill": {"kind": "normal", "std": 0.02}, "stream": 3},
        "v": {"dtype": "int8", "shape": [3], "fill": {"kind": "values", "data": [1, -2, 3]}, "role": "constant"},
        "b": {"dtype": "uint8", "shape": [2], "fill": {"kind": "bytes", "data": "eJxLTAIAASYAxA=="}, "role": "buffer"},
        "s": {"dtype": "string", "shape": [1], "fill": {"kind": "values", "data": ["t"]}},
    },
    "nodes": [
        {"op": "MatMul", "name": "a", "inputs": ["x", "w"], "outputs": ["p"],
         "attrs": {"k": [1, 2], "f": 0.5, "t": "u"}},
        {"op": "If", "name": "c", "inputs": ["", "p"], "outputs": ["q", ""], "attrs": {
            "then": {"kind": "graph", "outputs": ["r"], "values": {"r": {"dtype": "float32", "shape": ["2*n//2", 4]}},
                     "nodes": [{"op": "Neg", "name": "d", "inputs": ["p"], "outputs": ["r"]}]},
            "z": {"kind": "tensor", "dtype": "bool", "shape": [], "fill": {"kind": "constant", "value": True}},
            "inf": {"kind": "float", "value": "-inf"}}},
        {"op": "Relu", "name": "e", "domain": "own", "inputs": ["q"], "outputs": ["y"]},
    ],
    "values": {name: {"dtype": "float32", "shape": ["n", 4]} for name in "pqy"},
}  # fmt: skip
SEED_BYTES = json.dumps(SEED).encode()
INTERESTING: list[Any] = [
    None, True, 0, -1, 1, 2, 63, 2**31, 2**53, 2**63 - 1, 2**63, -(2**63), 10**30, 0.5, -0.0, 1e308, "", "n",
    "x", "y", "p", "r", "nan", "inf", "n*n*n*n*n*n*n", "min(n,1)", "n//0", "(n", "\x00", "\u2028", "a" * 2000,
    "float32", "string", "int4", "bool", "complex64", [], [1], ["n"], [[]], {}, {"kind": "file"},
    {"kind": "values", "data": []}, {"kind": "constant", "value": "nan"}, {"kind": "uniform"},
    {"kind": "normal"}, {"kind": "graph"}, {"kind": "bytes", "data": ""}, "graphnet/2",
]  # fmt: skip
TOKENS = [
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b":",
    b",",
    b"\\",
    b"\\ud800",
    b"1e999",
    b"-",
    b"9" * 400,
    b"\xff",
    b"\x00",
    b"null",
    b"[" * 3000,
]


def check(data: bytes) -> None:
    """A graph that is written and read again the same, or a GraphFormatError; nothing else, and quickly."""
    began = time.process_time()
    graph, error = read(data)
    if graph is not None:
        assert fileio.loads(fileio.dumps(graph)) == graph
        graph.structure_hash()
    if error is not None:
        assert error.file == "fuzz.json"
        assert error.where.startswith("$")
        str(error).encode()
    assert time.process_time() - began < SECONDS


def read(data: bytes) -> tuple[Graph | None, GraphFormatError | None]:
    try:
        return fileio.loads(data, file="fuzz.json"), None
    except GraphFormatError as error:
        return None, error


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a document."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    found = [(value, key) for key in keys]
    for key in keys:
        found += places(value[key])
    return found


def mutate_structure(draw: random.Random) -> bytes:
    """A few edits of the document: replace, delete, duplicate, swap, move, rename."""
    document = json.loads(SEED_BYTES)
    for _ in range(draw.randint(1, 4)):
        where = places(document)
        (holder, key), (other, other_key) = draw.choice(where), draw.choice(where)
        edit = draw.randrange(6)
        if edit == 0:
            holder[key] = json.loads(json.dumps(draw.choice(INTERESTING)))
        elif edit == 1:
            del holder[key]
        elif edit == 2:
            holder[key] = json.loads(json.dumps(other[other_key]))
        elif edit == 3 and isinstance(holder, list):
            holder.insert(key, json.loads(json.dumps(holder[key])))
        elif edit == 4 and isinstance(holder, dict):
            holder[draw.choice(["x", "w", "p", "kind", "n", "\ud800", ""])] = holder[key]
        elif isinstance(holder[key], list):
            draw.shuffle(holder[key])
    return json.dumps(document, indent=draw.choice([None, 1])).encode()


def mutate_bytes(data: bytes, draw: random.Random) -> bytes:
    """A few edits of the bytes: flip, cut, insert, splice, repeat."""
    text = bytearray(data)
    for _ in range(draw.randint(1, 5)):
        at, until = sorted(draw.randrange(len(text) + 1) for _ in range(2))
        edit = draw.randrange(6)
        if edit == 0 and text:
            text[at % len(text)] ^= 1 << draw.randrange(8)
        elif edit == 1:
            del text[at : min(until, at + 40)]
        elif edit == 2:
            text[at:at] = draw.choice(TOKENS)
        elif edit == 3:
            text[at:at] = text[at:until][:200]
        elif edit == 4:
            text = text[:until]
        else:
            text[at : at + 1] = bytes([draw.randrange(256)])
    return bytes(text)


def make(draw: random.Random) -> bytes:
    data = mutate_structure(draw) if draw.random() < 0.6 else SEED_BYTES
    if draw.random() < 0.5:
        data = mutate_bytes(data, draw)
    if draw.random() < 0.1:
        data = zstandard.compress(data)
        if draw.random() < 0.7:
            data = mutate_bytes(data, draw)
    return data


def test_the_seed_is_good() -> None:
    assert fileio.loads(SEED_BYTES).name == "seed"


@settings(max_examples=400, deadline=None)
@given(st.randoms(use_true_random=False))
def test_mutated_files(draw: random.Random) -> None:
    check(make(draw))


TEXT = st.text(max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(SEED)), JSON)
def test_any_json_in_any_member(name: str, value: Any) -> None:
    check(json.dumps({**SEED, name: value}).encode())


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200) | st.binary(max_size=60).map(lambda tail: b"\x28\xb5\x2f\xfd" + tail))
def test_any_bytes(data: bytes) -> None:
    check(data)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="nx0129+-*/%(),. maxincelvdMF_é", max_size=60))
def test_any_expression(text: str) -> None:
    try:
        parsed = dims.parse(text)
    except GraphFormatError:
        return
    if len(str(parsed)) <= dims.MAX_LENGTH:
        assert dims.parse(str(parsed)) == parsed


def fuzz(seconds: float, seed: int) -> None:
    """Run until the time is over; memory is limited. Any other exception ends the process with its traceback."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    os.environ["GRAPHNET_MAX_BYTES"] = str(64 << 20)
    end, round_ = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        for _ in range(100):
            round_ += 1
            data = make(random.Random(f"{seed} {round_}"))
            try:
                check(data)
            except BaseException:
                print(f"seed {seed} round {round_}: {data!r}")
                raise
    print(f"seed {seed}: {round_} inputs")


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_fuzz_for_long() -> None:
    seconds = float(os.environ.get("GRAPHNET_FUZZ_SECONDS", "60"))
    child = multiprocessing.get_context("spawn").Process(target=fuzz, args=(seconds, int(time.time())))
    child.start()
    child.join(seconds + 60)
    hung = child.is_alive()
    child.kill()
    assert not hung
    assert child.exitcode == 0
