"""docs/format.md says what the code does: its example, its lists and its numbers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import msgspec

from graphnet.ir import dims, expression, fileio, tensors, validate
from graphnet.ir.fills import DTYPES
from graphnet.ir.graph import FORMAT, OPSET, Fill, Graph

PAGE = (Path(__file__).parents[2] / "docs" / "format.md").read_text()


def test_the_example_is_what_we_write() -> None:
    example = PAGE[PAGE.index("```json\n") + 8 : PAGE.rindex("```")].encode()
    assert fileio.dumps(fileio.loads(example)) == example


def test_members_dtypes_and_fills_are_all_there() -> None:
    for field in msgspec.structs.fields(Graph):
        assert f"`{field.encode_name}`" in PAGE, field.encode_name
    for fill in get_args(Fill):
        assert f"| `{fill.__struct_config__.tag}` |" in PAGE
    listed = re.search(r"\* dtypes: (.*?)\.\n", PAGE, re.DOTALL)
    assert listed is not None
    assert set(re.findall(r"\w+", listed.group(1))) == DTYPES


def test_numbers() -> None:
    assert f"`{FORMAT}`" in PAGE
    assert f"| `opset` | {OPSET}:" in PAGE
    assert f"1 to {validate.MAX_NAME:,} printable" in PAGE
    assert f"at most {validate.MAX_DEPTH} deep" in PAGE
    assert f"at most {validate.MAX_RANK} dimensions" in PAGE
    assert f"at most {dims.MAX_LENGTH} characters and {dims.MAX_DEPTH} nested" in PAGE
    assert f"at most {expression.MAX_TERMS}\n  terms" in PAGE
    assert f"of at most {dims.MAX_EXPONENT}." in PAGE
    assert f"{tensors.quantiles()[-1]:.6f}" in PAGE
    assert f"window of at most {fileio.ZSTD_MAX_WINDOW >> 20} MiB" in PAGE
