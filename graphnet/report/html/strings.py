"""Every text of the page in English and Chinese: `templates/en.json` and `templates/zh.json`."""

from __future__ import annotations

from importlib.resources import files

import msgspec

LANGUAGES = ("en", "zh")


def texts(language: str) -> dict[str, str]:
    """All texts in one of `LANGUAGES`, by name; `{word}` in a text is filled in by the page."""
    file = files("graphnet.report.html") / "templates" / f"{language}.json"
    return msgspec.json.decode(file.read_bytes(), type=dict[str, str])
