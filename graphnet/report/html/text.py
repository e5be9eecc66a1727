"""Strangers' text in the page: what it must not do to HTML, to a script block or to the reader's eye."""

from __future__ import annotations

import unicodedata
from typing import Any

import msgspec

_SCRIPT_ESCAPES = {
    "<": "\\u003c", ">": "\\u003e", "&": "\\u0026", chr(0x2028): "\\u2028", chr(0x2029): "\\u2029"
}  # fmt: skip
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_MARKS_IN_A_ROW = 4


def visible(text: str, limit: int = 2000) -> str:
    """`text` with characters that are not seen, or that turn others round, written as `[U+202E]`.

    Line ends and tabs become spaces, of a pile of combining marks the first four stay, and what is longer than `limit`
    characters is cut with an ellipsis.
    """
    cut = text[:limit] + ("…" if len(text) > limit else "")
    shown, marks = [], 0
    for character in cut:
        category = unicodedata.category(character)
        marks = marks + 1 if category in ("Mn", "Me") else 0
        if character in "\n\r\t":
            shown.append(" ")
        elif category in _HIDDEN:
            shown.append(f"[U+{ord(character):04X}]")
        elif marks <= _MARKS_IN_A_ROW:
            shown.append(character)
    return "".join(shown)


def script_json(value: Any) -> str:
    """JSON of a Struct or builtins that is inert inside `<script type="application/json">`.

    No `<`, `>` or `&` is in it, so that neither `</script>` nor `<!--` can end the block or change how it is read.
    """
    text = msgspec.json.encode(value).decode()
    for character, escape in _SCRIPT_ESCAPES.items():
        text = text.replace(character, escape)
    return text
