"""Strangers' text: what is seen, and what a script block makes of it."""

from __future__ import annotations

import json

import pytest

from graphnet.report.html.text import script_json, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("resnet50 计算图 é", "resnet50 计算图 é"),
        ("a\u202egnp.exe", "a[U+202E]gnp.exe"),
        ("zero\u200bwidth\ufeff", "zero[U+200B]width[U+FEFF]"),
        ("two\nlines\tand \x1b[31m", "two lines and [U+001B][31m"),
        ("a" + "\u0301" * 50 + "b", "a" + "\u0301" * 4 + "b"),
        ("\ud800", "[U+D800]"),
        ("\u2066x\u2069", "[U+2066]x[U+2069]"),
    ],
)
def test_hidden_characters_are_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_long_text_is_cut() -> None:
    assert visible("x" * 50, 10) == "x" * 10 + "…"


def test_json_cannot_end_a_script_block() -> None:
    hostile = {"</script><!-- <script>": "&amp; \u2028 \u2029 ]]>"}
    text = script_json(hostile)
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == hostile
