"""Paths in errors: how members are written, and the search for the key that msgspec does not name."""

from __future__ import annotations

import json
import time

import msgspec
import pytest

from graphnet.errors import GraphFormatError
from graphnet.ir import explain, fileio
from graphnet.ir.graph import Graph


@pytest.mark.parametrize(
    ("key", "path"),
    [("w", "$.w"), ("a.b", '$["a.b"]'), ('q"', '$["q\\""]'), ("é", '$["\\u00e9"]'), ("", '$[""]'), ("1", '$["1"]')],
)
def test_member(key: str, path: str) -> None:
    assert explain.member("$", key) == path


def error_of(document: object) -> GraphFormatError:
    data = json.dumps(document).encode()
    with pytest.raises(msgspec.DecodeError) as caught:
        msgspec.json.decode(data, type=Graph)
    return explain.decode_error(data, caught.value)


def body(weights: object) -> object:
    node = {"op": "If", "name": "n", "attrs": {"fine": 1, "then": {"kind": "graph", "weights": weights}, "also": "x"}}
    return {"format": "graphnet/1", "name": "g", "nodes": [{"op": "A", "name": "a"}, node]}


def test_keys_within_keys() -> None:
    good = {"dtype": "bool", "shape": [], "fill": {"kind": "constant", "value": True}}
    weights = {**{f"w{i}": good for i in range(20)}, "bad": {**good, "shape": [0, "n"]}, "later": 3}
    assert error_of(body(weights)).where == "$.nodes[1].attrs.then.weights.bad.shape[1]"
    assert error_of(body({"only": None})).where == "$.nodes[1].attrs.then.weights.only"


def test_the_search_is_not_quadratic() -> None:
    """CPU seconds for a fault in the last of 50,000 values of a 5 MB file."""
    values = {f"layer.{i}.value": {"dtype": "float32", "shape": ["batch", 3, 224]} for i in range(50_000)}
    values["layer.49999.value"] = {"dtype": "float32", "shape": [None]}
    began = time.process_time()
    assert (
        error_of({"format": "graphnet/1", "name": "g", "values": values}).where
        == '$.values["layer.49999.value"].shape[0]'
    )
    assert time.process_time() - began < 3


def test_key_twice_deep_within() -> None:
    data = json.dumps(body({"once": 1, "twice": 2})).replace("once", "twice")
    with pytest.raises(GraphFormatError, match="'twice' is there twice") as caught:
        explain.check_members(data.encode())
    assert caught.value.where == "$.nodes[1].attrs.then.weights"


@pytest.mark.parametrize("last", [b'"p"', b"[]", b"{}", b"null", b'{"fill": 3}', b'{"fill": {"data": {}}}'])
def test_the_path_ends_where_a_key_that_is_there_twice_hides_the_error(last: bytes) -> None:
    wrong = b'{"dtype": "uint8", "shape": [1], "fill": {"kind": "values", "data": [null]}}'
    data = b'{"format": "graphnet/1", "name": "g", "weights": {"b": %s, "b": %s}}' % (wrong, last)
    with pytest.raises(GraphFormatError) as caught:
        fileio.loads(data)
    assert caught.value.where.startswith("$.weights")
