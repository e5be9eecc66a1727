"""The JSON Schema: the file in the repository is the generated one, and names every member and tag of the types."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import msgspec

from graphnet.ir import graph
from graphnet.ir.schema import json_schema

FILE = Path(__file__).parents[2] / "schema" / "graphnet-1.json"


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
