"""Fuzzing of the ONNX import: damaged bytes and damaged messages end as a graph or a GraphFormatError, in bounds.

`GRAPHNET_FUZZ_SECONDS=600 pytest -m slow tests/ir/onnx_bridge/test_fuzz.py` runs for ten minutes.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf.descriptor import FieldDescriptor  # type: ignore[import-untyped]
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import ModelProto, helper, numpy_helper, parser

SERVER = Path(__file__).with_name("fuzz_server.py")
MEMORY_MB = 3 << 10
SECONDS = 25.0
HEAD = '<ir_version: 10, opset_import: ["" : 23]>'
TEXTS = [
    f"""{HEAD} g (float[batch, 3, h, w] x) => (float[a, b] y) <int64[2] t = {{0, -1}}> {{
        c = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (x, k)
        p = MaxPool <kernel_shape = [2, 2]> (c)
        y = Reshape(p, t)
    }}""",
    f"""{HEAD} g (float[n, 4] x, bool c, int64 trips) => (float[n, 4] y, float[t, n, 4] all) {{
        z = If (c) <then_branch = t () => (float[n, 4] a) {{ a = Relu(x) }},
                    else_branch = e () => (float[n, 4] b) {{ u = Neg(x) b = Exp(u) }}>
        y, all = Loop (trips, , z) <
            body = l (int64 i, bool d, float[n, 4] s) => (bool d2, float[n, 4] s2, float[n, 4] o) {{
                d2 = Identity(d)
                s2 = Add(s, s)
                o = Neg(s2)
            }}
        >
    }}""",
    f"""{HEAD} g (float[batch, seq, 8] x) => (float[p, q, r] y)
    <int64 i = {{0}}, int64[1] j = {{0}}, int64[1] m = {{-1}}> {{
        s = Shape(x)
        b = Gather <axis = 0> (s, i)
        u = Unsqueeze(b, j)
        v = Slice(s, j, u, j)
        w = Concat <axis = 0> (u, m, u)
        r1 = Range(i, b, b)
        c = Cast <to = 1> (r1)
        t = Tile(c, u)
        y = Reshape(x, w)
    }}""",
    """<ir_version: 7, opset_import: ["" : 11, "local" : 1]> g (float[2, 1, 3] x) => (float[2, 3] y) {
        q = local.f(x)
        y = Squeeze <axes = [1]> (q)
    } <domain: "local", opset_import: ["" : 11]> f (a) => (b) { b = Add(a, a) }""",
    f"""{HEAD} g (float[2, 6, 8] q) => (float[2, 6, 8] y) <float[8] s = {{1,1,1,1,1,1,1,1}}> {{
        n = LayerNormalization <axis = -1> (q, s)
        a = Attention <q_num_heads = 2, kv_num_heads = 2> (n, n, n)
        e = Einsum <equation = "abc,abd->acd"> (a, a)
        f = Resize <mode = "linear"> (a, , sc)
        g1, g2 = Split <axis = 1, num_outputs = 2> (a)
        h = Pad(g1, pads)
        k, l = TopK(a, kk)
        y = Gelu(a)
    }}""",
]


def seeds() -> list[bytes]:
    models = [parser.parse_model(text) for text in TEXTS]
    weight = np.linspace(-1, 1, 8 * 27, dtype=np.float32).reshape(8, 3, 3, 3)
    models[0].graph.initializer.append(numpy_helper.from_array(weight, "k"))
    for name, array in (("sc", [1.0, 2.0, 2.0]), ("pads", [0, 1, 0, 0, 1, 0]), ("kk", [2])):
        dtype = np.float32 if name == "sc" else np.int64
        models[4].graph.initializer.append(numpy_helper.from_array(np.array(array, dtype), name))
    sparse = parser.parse_model(f"{HEAD} g (float[2, 3] x) => (float[2, 3] y) {{ y = Add(x, s) }}")
    values = numpy_helper.from_array(np.array([5.0], np.float32), "s")
    indices = numpy_helper.from_array(np.array([4], np.int64), "i")
    sparse.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [2, 3]))
    return [model.SerializeToString() for model in [*models, sparse]]


SEEDS = seeds()
NUMBERS = [0, 1, -1, 2, 7, 13, 64, 255, 1 << 16, 1 << 31, (1 << 31) - 1, -(1 << 31), 1 << 40, (1 << 63) - 1, -(1 << 63)]
WORDS = [
    "",
    "x",
    "y",
    "s",
    "Add",
    "Loop",
    "Cast",
    "Concat",
    "ai.onnx",
    "local",
    "../w",
    "\0",
    "a*b",
    "max(a,b)",
    "batch",
]


def damaged_bytes(source: bytes, rng: random.Random) -> bytes:
    """A few bytes changed, cut out, doubled, or the end cut off."""
    data = bytearray(source)
    for _ in range(rng.randint(1, 6)):
        place = rng.randrange(len(data))
        match rng.randrange(5):
            case 0:
                data[place] = rng.randrange(256)
            case 1:
                data[place] ^= 1 << rng.randrange(8)
            case 2:
                del data[place : place + rng.randint(1, 8)]
            case 3:
                data[place:place] = data[place : place + rng.randint(1, 16)]
            case _:
                del data[max(1, len(data) - rng.randint(1, 20)) :]
        if not data:
            return b""
    return bytes(data)


def messages(message: Any) -> Iterator[Any]:
    """A message and all messages in it."""
    yield message
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            for item in value if not hasattr(value, "ListFields") else [value]:
                yield from messages(item)


def damaged_message(source: bytes, rng: random.Random) -> bytes:
    """Fields of the message set to other legal, but senseless values, removed, repeated or moved elsewhere."""
    model = ModelProto.FromString(source)
    for _ in range(rng.randint(1, 4)):
        places = list(messages(model))
        place = rng.choice(places)
        field = rng.choice(place.DESCRIPTOR.fields)
        try:
            _damage(place, field, places, rng)
        except (TypeError, ValueError, IndexError):
            continue
    return bytes(model.SerializeToString())


def _damage(place: Any, field: Any, places: list[Any], rng: random.Random) -> None:
    current = getattr(place, field.name)
    repeated = hasattr(current, "append") or hasattr(current, "add")
    if rng.random() < 0.2:
        place.ClearField(field.name)
    elif field.type == FieldDescriptor.TYPE_MESSAGE:
        donors = [other for other in places if other.DESCRIPTOR is field.message_type and other is not place]
        donor = rng.choice(donors).SerializeToString() if donors else b""  # bytes: it may contain `place` itself
        if donors and repeated and rng.random() < 0.7:
            current.add().MergeFromString(donor)
        elif donors and not repeated:
            current.MergeFromString(donor)
        elif repeated and len(current):
            del current[rng.randrange(len(current))]
    elif repeated and len(current) and rng.random() < 0.5:
        current[rng.randrange(len(current))] = _value(field, rng)
    elif repeated:
        current.append(_value(field, rng))
    else:
        setattr(place, field.name, _value(field, rng))


def _value(field: Any, rng: random.Random) -> Any:
    if field.type == FieldDescriptor.TYPE_STRING:
        return rng.choice(WORDS)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return rng.choice([b"", b"\xff\xfe", b"NOTSET", b"abc,abd->acd", bytes(rng.randrange(256) for _ in range(9))])
    if field.type in (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE):
        return rng.choice([0.0, -1.5, 1e38, float("nan"), float("inf"), float("-inf")])
    return rng.choice(NUMBERS)


class Server:
    """The forking importer, restarted by nothing: it must survive."""

    def __init__(self, folder: Path) -> None:
        self._log = open(folder / "stderr", "wb")  # noqa: SIM115  closed in close()
        self._process = subprocess.Popen(
            [sys.executable, str(SERVER), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )
        self._folder = folder
        self.outcomes: Counter[str] = Counter()

    def check(self, data: bytes) -> None:
        """Import `data`; fails the test unless it ended as a graph or a GraphFormatError, in time and memory.

        A signal is a crash inside the C++ library: it ends the importing child only, and becomes a GraphFormatError.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(len(data).to_bytes(4, "little") + data)
        self._process.stdin.flush()
        answer = self._process.stdout.readline().split()
        assert len(answer) == 3, f"the server died; see {self._folder}/stderr"
        code, seconds, megabytes = int(answer[0]), float(answer[1]), int(answer[2])
        self.outcomes["graph" if code == 0 else "format error" if code == 1 else f"exit {code}"] += 1
        if code == 2 or code == -14 or seconds > SECONDS or megabytes > MEMORY_MB:
            saved = self._folder / "failing.onnx"
            saved.write_bytes(data)
            log = (self._folder / "stderr").read_text(errors="replace")[-3000:]
            pytest.fail(f"outcome {code} after {seconds} s and {megabytes} MB; input {saved}\n{log}")

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._log.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(tmp_path_factory.mktemp("fuzz"))
    yield running
    running.close()


def test_the_seeds_themselves_are_good(server: Server) -> None:
    for seed in SEEDS:
        server.check(seed)
    assert server.outcomes == {"graph": len(SEEDS)}


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(which=st.integers(0, len(SEEDS) - 1), rng=st.randoms(use_true_random=False))
def test_damaged_bytes(server: Server, which: int, rng: random.Random) -> None:
    server.check(damaged_bytes(SEEDS[which], rng))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(which=st.integers(0, len(SEEDS) - 1), rng=st.randoms(use_true_random=False))
def test_damaged_messages(server: Server, which: int, rng: random.Random) -> None:
    server.check(damaged_message(SEEDS[which], rng))


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_for_a_long_time(server: Server) -> None:
    """As long as GRAPHNET_FUZZ_SECONDS says (default 60), from a seed that is printed on failure."""
    seed = int(os.environ.get("GRAPHNET_FUZZ_SEED", "0"))
    end = time.monotonic() + float(os.environ.get("GRAPHNET_FUZZ_SECONDS", "60"))
    rng = random.Random(seed)
    while time.monotonic() < end:
        damage = damaged_bytes if rng.random() < 0.3 else damaged_message
        server.check(damage(rng.choice(SEEDS), rng))
    print(dict(server.outcomes))
    assert sum(server.outcomes.values()) > 0
