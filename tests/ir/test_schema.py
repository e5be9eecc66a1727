"""The JSON Schema: the file in the repository is the generated one, and names every member and tag of the types."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import jsonschema
import msgspec
import pytest

from graphnet.ir import graph
from graphnet.ir.schema import json_schema

ROOT = Path(__file__).parents[2]
FILE = ROOT / "schema" / "graphnet-1.json"


def test_the_file_is_up_to_date() -> None:
    """Renew it with `graphnet schema > schema/graphnet-1.json`."""
    assert msgspec.json.decode(FILE.read_bytes()) == json_schema()


def test_members_and_tags() -> None:
    schema = json_schema()
    assert set(schema["properties"]) == {
        "format",
        *(field.encode_name for field in msgspec.structs.fields(graph.Graph)),
    }
    assert schema["properties"]["format"] == {"enum": ["graphnet/1"]}
    assert schema["required"] == ["format", "name", "outputs"]
    assert schema["additionalProperties"] is False
    kinds = {
        name: part["properties"]["kind"]["enum"]
        for name, part in schema["$defs"].items()
        if "kind" in part["properties"]
    }
    assert kinds == {
        "Normal": ["normal"], "Uniform": ["uniform"], "Constant": ["constant"], "Values": ["values"],
        "Bytes": ["bytes"],
        "File": ["file"], "Body": ["graph"], "TensorAttr": ["tensor"], "FloatAttr": ["float"],
    }  # fmt: skip
    assert schema["$defs"]["Value"]["properties"]["dtype"]["enum"] == sorted(get_args(graph.DType))


def _errors(document: Any) -> list[str]:
    found = jsonschema.Draft202012Validator(msgspec.json.decode(FILE.read_bytes())).iter_errors(document)
    return [f"{error.json_path}: {error.message}" for error in found]


def test_graphs_of_the_core_set_are_valid() -> None:
    for name in ("matmul/square_512", "graph/gcn", "science/deeponet", "transformer/gpt2_decode", "vision/resnet50"):
        assert _errors(msgspec.json.decode((ROOT / "benchmark" / f"{name}.json").read_bytes())) == []


@pytest.mark.parametrize(
    "change",
    [
        {"format": "graphnet/2"}, {"colour": "red"}, {"nodes": [{"op": 3}]}, {"name": None}, {"outputs": "y"},
        {"weights": {"w": {"dtype": "float31", "shape": [2]}}},
    ],
    ids=lambda change: next(iter(change)),
)  # fmt: skip
def test_other_documents_are_not(change: dict[str, Any]) -> None:
    document = msgspec.json.decode((ROOT / "benchmark" / "matmul" / "square_512.json").read_bytes())
    assert _errors(document | change)
