"""Kinds of bad graph files: each is refused by GraphFormatError, which names the file, the JSON path and the cause."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from graphnet.errors import GraphFormatError
from graphnet.ir import fileio

Document = dict[str, Any]


def good() -> Document:
    """A legal graph with a symbol, exact weights, a nested graph and every kind of attribute."""
    branch = {
        "kind": "graph",
        "outputs": ["t"],
        "nodes": [{"op": "Neg", "name": "neg", "inputs": ["v"], "outputs": ["t"]}],
        "values": {"t": {"dtype": "float32", "shape": ["batch", 3]}},
    }
    return {
        "format": "graphnet/1",
        "name": "small",
        "graph_id": "GN-2026-CV-001",
        "dims": {"batch": {"min": 1, "max": 8, "default": 2}},
        "opset": 23,
        "inputs": [
            {"name": "x", "dtype": "float32", "shape": ["batch", 4]},
            {"name": "c", "dtype": "bool", "shape": [], "fill": {"kind": "constant", "value": True}},
        ],
        "outputs": ["y"],
        "weights": {
            "layer.weight": {"dtype": "float32", "shape": [4, 3], "fill": {"kind": "normal", "std": 0.02}},
            "axes": {"dtype": "int64", "shape": [2], "fill": {"kind": "values", "data": [0, 1]}},
            "table": {"dtype": "uint8", "shape": [3], "fill": {"kind": "bytes", "data": packed(b"abc")}},
        },
        "nodes": [
            {"op": "MatMul", "name": "product", "inputs": ["x", "layer.weight"], "outputs": ["v"], "attrs": {}},
            {"op": "Choose", "name": "choose", "domain": "own", "inputs": ["c", "", "axes"], "outputs": ["y"],
             "attrs": {"alpha": 1.5, "modes": ["a", "b"], "then": branch}},
        ],
        "values": {"v": {"dtype": "float32", "shape": ["batch", 3]}, "y": {"dtype": "float32", "shape": ["batch", 3]}},
    }  # fmt: skip


def packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data)).decode()


def put(*path: str | int, value: Any) -> Callable[[Document], None]:
    """An edit that sets the member at `path`."""

    def edit(document: Document) -> None:
        place: Any = document
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value

    return edit


def remove(*path: str | int) -> Callable[[Document], None]:
    """An edit that deletes the member at `path`."""

    def edit(document: Document) -> None:
        place: Any = document
        for step in path[:-1]:
            place = place[step]
        del place[path[-1]]

    return edit


def nested(depth: int) -> Document:
    body: Document = {"kind": "graph", "outputs": ["v"]}
    for level in range(depth):
        node = {"op": "Neg", "name": "n", "outputs": [f"n{level}"], "attrs": {"body": body}}
        values = {f"n{level}": {"dtype": "float32", "shape": []}}
        body = {"kind": "graph", "outputs": [f"n{level}"], "nodes": [node], "values": values}
    return body


W = ("weights", "layer.weight")
F = (*W, "fill")
N0, N1 = ("nodes", 0), ("nodes", 1)
W_AT = r'$.weights["layer.weight"]'
BODY = (*N1, "attrs", "then")
INT64_ONE = {"dtype": "int64", "shape": [1]}

EDITS: list[tuple[str, Callable[[Document], None], str, str]] = [
    # the header
    ("newer-format", put("format", value="graphnet/2"), "$.format", "upgrade graphnet"),
    ("newer-format-with-new-member", lambda d: d.update(format="graphnet/3", shiny=1), "$.format", "upgrade graphnet"),
    ("other-format", put("format", value="onnx/1"), "$.format", "not a graph file"),
    ("no-format", remove("format"), "$.format", "no member 'format'"),
    ("no-name", remove("name"), "$", "missing required field `name`"),
    ("name-empty", put("name", value=""), "$.name", "empty"),
    ("name-leaves-folder", put("name", value="../../x"), "$.name", "leave its folder"),
    ("name-number", put("name", value=3), "$.name", "Expected `str`, got `int`"),
    ("opset-old", put("opset", value=13), "$.opset", "opset is 13"),
    ("graph-id-pattern", put("graph_id", value="GN-26-C-1"), "$.graph_id", "not like GN-2026-CV-001"),
    ("domain-unknown", put("domain", value="cars"), "$.domain", "cars"),
    ("unknown-member", put("code", value="import os"), "$", "unknown field `code`"),
    ("metadata-wrong-type", put("flops", value="many"), "$.flops", "Expected `int"),
    # types of members
    ("nodes-is-object", put("nodes", value={}), "$.nodes", "got `object`"),
    ("weights-is-list", put("weights", value=[]), "$.weights", "got `array`"),
    ("node-is-null", put("nodes", 1, value=None), "$.nodes[1]", "null"),
    ("node-without-op", remove(*N0, "op"), "$.nodes[0]", "`op`"),
    ("node-input-number", put(*N0, "inputs", 1, value=7), "$.nodes[0].inputs[1]", "Expected `str`"),
    ("dtype-unknown", put(*W, "dtype", value="float31"), W_AT + ".dtype", "float31"),
    ("fill-kind-unknown", put(*F, "kind", value="pickle"), W_AT + ".fill.kind", "pickle"),
    ("fill-path-refused", put(*F, value={"kind": "file", "path": "/etc/passwd"}), W_AT + ".fill", "`path`"),
    ("attr-null", put(*N1, "attrs", "alpha", value=None), "$.nodes[1].attrs.alpha", "null"),
    ("attr-bool", put(*N1, "attrs", "alpha", value=True), "$.nodes[1].attrs.alpha", "bool"),
    ("number-infinite", put(*N1, "attrs", "alpha", value="@1e999@"), "$.nodes[1].attrs.alpha", "out of range"),
    # names
    ("input-name-empty", put("inputs", 0, "name", value=""), "$.inputs[0].name", "empty"),
    ("name-control-character", put("inputs", 0, "name", value="x\n"), "$.inputs[0].name", "control characters"),
    ("name-escape-sequence", put(*N0, "name", value="\x1b[31m"), "$.nodes[0].name", "control characters"),
    ("name-too-long", put("inputs", 0, "name", value="x" * 5000), "$.inputs[0].name", "5000 characters"),
    ("node-name-twice", put(*N1, "name", value="product"), "$.nodes[1].name", "there already"),
    ("value-twice", put(*N1, "outputs", value=["v"]), "$.nodes[1].outputs[0]", "'v' is defined twice"),
    ("input-twice", put("inputs", 1, "name", value="x"), "$.inputs[1].name", "'x' is defined twice"),
    ("weight-hides-input", lambda d: d["weights"].update(x=d["weights"]["axes"]), "$.weights.x", "defined twice"),
    ("node-writes-weight", put(*N0, "outputs", value=["axes"]), "$.nodes[0].outputs[0]", "'axes' is defined twice"),
    ("body-hides-outer", put(*BODY, "inputs", value=[{"name": "v", "dtype": "float32", "shape": []}]),
     "$.nodes[1].attrs.then.inputs[0].name", "'v' is defined twice"),
    ("operator-name", put(*N0, "op", value="rm -rf"), "$.nodes[0].op", "no operator's name"),
    ("operator-domain", put(*N0, "domain", value="ai.onnx"), "$.nodes[0].domain", "written ''"),
    ("attr-name", put(*N1, "attrs", "a b", value=1), "$.nodes[1].attrs", "no attribute's name"),
    # wiring
    ("cycle", put(*N0, "inputs", 1, value="y"), "$.nodes[0].inputs[1]", "cycle: choose -> product -> choose"),
    ("self-cycle", put(*N0, "inputs", 1, value="v"), "$.nodes[0].inputs[1]", "cycle: product -> product"),
    ("not-sorted", lambda d: d["nodes"].reverse(), "$.nodes[0].attrs.then.nodes[0].inputs[0]", "before node 'product'"),
    ("dangling", put(*N0, "inputs", 0, value="z"), "$.nodes[0].inputs[0]", "dangling name: 'z'"),
    ("dangling-in-body", put(*BODY, "nodes", 0, "inputs", value=["q"]),
     "$.nodes[1].attrs.then.nodes[0].inputs[0]", "dangling name: 'q'"),
    ("body-name-outside", put("outputs", value=["y", "t"]), "$.outputs[1]", "'t' is not defined"),
    ("output-undefined", put("outputs", 0, value="nowhere"), "$.outputs[0]", "'nowhere' is not defined"),
    ("output-twice", put("outputs", value=["y", "y"]), "$.outputs", "listed twice"),
    ("no-outputs", remove("outputs"), "$.outputs", "no output"),
    ("node-without-output", put(*N0, "outputs", value=[]), "$.nodes[0]", "has no output"),
    ("value-missing", remove("values", "v"), "$.nodes[0].outputs[0]", "no entry in values"),
    ("value-stray", put("values", "ghost", value={"dtype": "bool", "shape": []}), "$.values.ghost", "no node makes"),
    ("value-without-name", put("values", "", value={"dtype": "bool", "shape": []}), '$.values[""]', "no node makes"),
    ("nested-too-deep", put(*BODY, value=nested(17)), "$.nodes[1].attrs.then" + ".nodes[0].attrs.body" * 16,
     "nested deeper than 16"),
    # shapes and symbols
    ("dimension-negative", put(*W, "shape", value=[-1, 3]), W_AT + ".shape[0]", "negative"),
    ("dimension-float", put(*W, "shape", value=[4.0, 3]), W_AT + ".shape[0]", "Expected `int`, got `float`"),
    ("dimension-huge", put(*W, "shape", value=[2**63]), W_AT + ".shape[0]", "63 bits"),
    ("elements-overflow", put("values", "v", "shape", value=[2**32, 2**31]), "$.values.v.shape", "63 bits"),
    ("elements-overflow-empty", put("values", "v", "shape", value=[0, 2**32, 2**31]), "$.values.v.shape", "63 bits"),
    ("rank-huge", put("values", "v", "shape", value=[1] * 65), "$.values.v.shape", "65 dimensions"),
    ("weight-symbolic", put(*W, "shape", value=["batch", 3]), W_AT + ".shape[0]", "Expected `int`, got `str`"),
    ("symbol-undeclared", put("inputs", 0, "shape", value=["rows", 4]), "$.inputs[0].shape[0]", "'rows'"),
    ("symbol-unused", put("dims", "spare", value={"min": 1, "max": 1, "default": 1}), "$.dims.spare", "no shape uses"),
    ("symbol-name", put("dims", "a b", value={"min": 1, "max": 1, "default": 1}), '$.dims["a b"]', "a symbol is"),
    ("range-empty", put("dims", "batch", "min", value=9), "$.dims.batch", "min <= default <= max"),
    ("range-default", put("dims", "batch", "default", value=100), "$.dims.batch", "min <= default <= max"),
    ("range-negative", put("dims", "batch", "min", value=-1), "$.dims.batch", "0 <= min"),
    ("range-without-default", remove("dims", "batch", "default"), "$.dims.batch", "`default`"),
    ("data-dependent-input", put("dims", "batch", "data_dependent", value=True), "$.inputs[0].shape", "data-dependent"),
    ("expression-code", put("values", "v", "shape", 0, value="__import__('os')"),
     "$.values.v.shape[0]", "unknown func"),
    ("expression-bomb", put("values", "v", "shape", 0, value="*".join(["(batch+x)"] * 40)),
     "$.values.v.shape[0]", "64"),
    ("expression-deep", put("values", "v", "shape", 0, value="(" * 99 + "1"), "$.values.v.shape[0]", "nested deeper"),
    ("expression-negative", put("values", "v", "shape", 0, value="batch-5"), "$.values.v.shape[0]", "sizes: -3"),
    ("expression-divides-by-zero", put("values", "v", "shape", 0, value="8//(batch-2)"), "$.values.v.shape[0]", "zero"),
    # fills
    ("values-too-few", put("weights", "axes", "fill", "data", value=[0]), "$.weights.axes.fill.data", "1 elements"),
    ("values-float-in-int", put("weights", "axes", "fill", "data", value=[0, 0.5]),
     "$.weights.axes.fill.data", "float"),
    ("values-out-of-range", put("weights", "axes", "fill", "data", value=[0, 2**63]),
     "$.weights.axes.fill.data", "int64"),
    ("values-word", put(*F, value={"kind": "values", "data": ["nan"] * 11 + ["NaN"]}), W_AT + ".fill.data", "'NaN'"),
    ("values-overflow", put(*F, value={"kind": "values", "data": [1e39] * 12}), W_AT + ".fill.data", "outside float32"),
    ("constant-bool-in-float", put(*F, value={"kind": "constant", "value": True}), W_AT + ".fill.value", "bool"),
    ("normal-for-integers", put("weights", "axes", "fill", value={"kind": "normal"}), "$.weights.axes.fill", "uniform"),
    ("normal-negative-std", put(*F, "std", value=-1.0), W_AT + ".fill.std", "negative"),
    ("normal-clips-crossed", put(*F, value={"kind": "normal", "min": 2, "max": 1}), W_AT + ".fill.min", "above max"),
    ("uniform-crossed", put(*F, value={"kind": "uniform", "low": 2, "high": 1}), W_AT + ".fill.low", "above high"),
    ("uniform-fraction", put("weights", "axes", "fill", value={"kind": "uniform", "low": 0, "high": 1.5}),
     "$.weights.axes.fill.high", "1.5 is no int64"),
    ("uniform-beyond-floats", put("weights", "axes", "fill", value={"kind": "uniform", "low": 0, "high": 10**400}),
     "$.weights.axes.fill.high", "is no int64"),
    ("uniform-symbol-unknown", put("inputs", 0, value={"name": "x", "dtype": "int64", "shape": ["batch"],
     "fill": {"kind": "uniform", "low": 0, "high": "rows-1"}}), "$.inputs[0].fill.high", "'rows'"),
    ("uniform-index-into-nothing", put("inputs", 0, value={"name": "x", "dtype": "int64", "shape": ["batch"],
     "fill": {"kind": "uniform", "low": 0, "high": "batch-3"}}), "$.inputs[0].fill.low", "above high -1"),
    ("bytes-not-base64", put("weights", "table", "fill", "data", value="§"), "$.weights.table.fill.data", "not base64"),
    ("bytes-not-zlib", put("weights", "table", "fill", "data", value="AAAA"), "$.weights.table.fill.data", "zlib"),
    ("bytes-too-few", put("weights", "table", "fill", "data", value=packed(b"ab")),
     "$.weights.table.fill.data", "2, not"),
    ("bytes-bomb", put("weights", "table", "fill", "data", value=packed(bytes(10**8))),
     "$.weights.table.fill.data", "more"),
    ("bytes-bomb-of-true-size", put("weights", "table", value={"dtype": "uint8", "shape": [10**8], "fill": {
     "kind": "bytes", "data": packed(bytes(10**8))}}), "$.weights.table.fill", "larger than 33,554,432 bytes"),
    ("bytes-bombs-together", lambda d: d["weights"].update({f"t{i}": {"dtype": "uint8", "shape": [10**7], "fill": {
     "kind": "bytes", "data": packed(bytes(10**7))}} for i in range(4)}), "$.weights.t3.fill", "all 'bytes' fills"),
    ("bytes-bool-of-7", put("weights", "table", value={"dtype": "bool", "shape": [1], "fill": {"kind": "bytes",
     "data": packed(b"\7")}}), "$.weights.table.fill.data", "0 or 1"),
    ("bytes-for-strings", put("weights", "table", "dtype", value="string"), "$.weights.table.fill", "string"),
    ("stream-negative", put(*W, "stream", value=-1), W_AT + ".stream", "stream -1"),
    ("file-in-body", put(*BODY, "weights", value={"w": {**INT64_ONE, "fill": {"kind": "file"}}}),
     "$.nodes[1].attrs.then.weights.w.fill", "nested graph"),
    ("file-for-input", put("inputs", 0, "fill", value={"kind": "file"}), "$.inputs[0].fill", "input"),
    ("file-absent", put(*F, value={"kind": "file"}), "$", "need the sidecar"),
    ("exact-input-symbolic", put("inputs", 0, "fill", value={"kind": "values", "data": [1]}),
     "$.inputs[0].fill", "symbols"),
    # attributes
    ("attr-int-huge", put(*N1, "attrs", "n", value=2**63), "$.nodes[1].attrs.n", "64 bits"),
    ("attr-mixed-list", put(*N1, "attrs", "n", value=[1, "a"]), "$.nodes[1].attrs.n", "one kind"),
    ("attr-tensor-count", put(*N1, "attrs", "n", value={"kind": "tensor", **INT64_ONE, "fill": {"kind": "values",
     "data": []}}), "$.nodes[1].attrs.n.fill.data", "0 elements"),
    ("attr-float-word", put(*N1, "attrs", "n", value={"kind": "float", "value": "huge"}),
     "$.nodes[1].attrs.n.value", "huge"),
]  # fmt: skip


def text(document: Document) -> bytes:
    return json.dumps(document).replace('"@1e999@"', "1e999").encode()


TEXT = text(good())
RAW: list[tuple[str, bytes, str, str]] = [
    ("empty", b"", "$", "truncated"),
    ("truncated", TEXT[:-30], "$", "truncated"),
    ("trailing-data", TEXT + b"{}", "$", "trailing characters"),
    ("list", b"[]", "$", "Expected `object`, got `array`"),
    ("null", b"null", "$", "null"),
    ("not-json", b"\x08\x07\x12\x04onnx", "$", "not valid JSON"),
    ("python-pickle", b"\x80\x04\x95\x10\x00\x00\x00", "$", "not valid JSON"),
    ("bad-utf8", TEXT.replace(b"small", b"sm\xffll"), "$", "UTF-8"),
    ("byte-order-mark", b"\xef\xbb\xbf" + TEXT, "$", "not valid JSON"),
    ("utf16", TEXT.decode().encode("utf-16"), "$", "not valid JSON"),
    ("nan-literal", TEXT.replace(b"1.5", b"NaN"), "$", "not valid JSON"),
    ("comment", TEXT + b"// end", "$", "trailing"),
    ("lone-surrogate", TEXT.replace(b"small", b"sm\\ud800ll"), "$", "not valid JSON"),
    ("number-of-10000-digits", TEXT.replace(b'"opset": 23', b'"opset": 2' + b"3" * 10_000), "$.opset", "out of range"),
    ("type-before-surrogate-key",
     TEXT.replace(b'"fill": {"kind": "normal"', b'"fill": 3, "x\\ud800": {"kind": "normal"'),
     '$.weights["layer.weight"].fill', "got `int`"),
    ("key-twice-weight",
     TEXT.replace(b'"axes": {', b'"axes": {"dtype": "int64", "shape": [0], "fill": {"kind": "values",'
     b' "data": []}}, "axes": {'), "$.weights", "key 'axes' is there twice"),
    ("key-twice-top", TEXT.replace(b'"opset"', b'"opset": 23, "opset"'), "$", "key 'opset' is there twice"),
    ("key-twice-node", TEXT.replace(b'"op": "MatMul"', b'"op": "MatMul", "op": "Gemm"'), "$.nodes[0]", "key 'op'"),
    ("key-twice-escaped", TEXT.replace(b'"opset"', b'"\\u006fpset": 23, "opset"'), "$", "key 'opset' is there twice"),
    ("deep-objects",
     TEXT.replace(b"1.5", b'{"kind": "graph", "nodes": [{"op": "a", "name": "", "attrs": {"b":' * 20_000),
     "$", "nested too deep"),
    ("deep-lists", TEXT.replace(b"1.5", b"[" * 100_000), "$.nodes[1].attrs[...][0]", "got `array`"),
    ("zstd-truncated", zstandard.compress(TEXT)[:-8], "$", "truncated"),
    ("zstd-corrupt", zstandard.compress(TEXT)[:40] + b"\xff" * 40, "$", "zstd"),
    ("zstd-trailing", zstandard.compress(TEXT) + b"more", "$", "after the end"),
    ("zstd-second-frame", zstandard.compress(TEXT) * 2, "$", "after the end"),
    ("zstd-bomb", zstandard.compress(bytes(64 << 20), 19), "$", "larger than 33,554,432 bytes"),
    ("too-big", b" " * ((32 << 20) + 1), "$", "larger than 33,554,432 bytes"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHNET_MAX_BYTES", str(32 << 20))


def refused(data: bytes, folder: Path) -> GraphFormatError:
    file = folder / "bad.json"
    file.write_bytes(data)
    with pytest.raises(GraphFormatError) as caught:
        fileio.load(file)
    assert caught.value.file == str(file)
    assert str(caught.value).startswith(f"{file}: {caught.value.where}")
    return caught.value


def test_the_unedited_file_is_good(tmp_path: Path) -> None:
    (tmp_path / "good.json").write_bytes(TEXT)
    graph = fileio.load(tmp_path / "good.json")
    assert fileio.loads(fileio.dumps(graph)) == graph


@pytest.mark.parametrize(("edit", "where", "cause"), [row[1:] for row in EDITS], ids=[row[0] for row in EDITS])
def test_bad_member(edit: Callable[[Document], None], where: str, cause: str, tmp_path: Path) -> None:
    document = good()
    edit(document)
    error = refused(text(document), tmp_path)
    assert (error.where, cause in error.cause) == (where, True), error


@pytest.mark.parametrize(("data", "where", "cause"), [row[1:] for row in RAW], ids=[row[0] for row in RAW])
def test_bad_bytes(data: bytes, where: str, cause: str, tmp_path: Path) -> None:
    error = refused(data, tmp_path)
    assert (error.where, cause in error.cause) == (where, True), error
    assert re.search(r"\S", error.cause)
