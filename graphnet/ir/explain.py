"""Why a document is no graph: exact JSON paths for decoding errors, keys that are there twice, newer formats."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from math import isfinite
from typing import Any

import msgspec

from graphnet.errors import GraphFormatError
from graphnet.ir.graph import FORMAT, Graph

_WHERE = re.compile(r"(?s)(.*?) - at (?:`key` in )?`(\$.*)`")
_STEP = re.compile(r"\.([A-Za-z_]\w*)|\[(\d+|\.\.\.)\]")
_CONTAINERS = {"inputs", "outputs", "weights", "nodes", "values"}
"""Optional members that can be cut away from a graph while an error elsewhere is searched."""


class _Header(msgspec.Struct):
    format: str = ""


def decode_error(data: bytes, error: Exception) -> GraphFormatError:
    """The GraphFormatError for what msgspec raised while it decoded `data` to a Graph."""
    if isinstance(error, RecursionError):
        return GraphFormatError("nested too deep")
    if not isinstance(error, msgspec.ValidationError):
        return GraphFormatError(f"not valid JSON: {error}")
    check_format(data)
    match = _WHERE.fullmatch(str(error))
    if match is None:
        return GraphFormatError(str(error))
    cause, where = match.groups()
    if "[...]" in where:
        where = _exact_path(data, where)
    return GraphFormatError(cause, where=where)


def check_format(data: bytes) -> None:
    """Raise GraphFormatError where the document states a newer format, or none, or one that is not ours."""
    try:
        stated = msgspec.json.decode(data, type=_Header).format
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    if stated == FORMAT:
        return
    name, _, version = stated.partition("/")
    own_name, _, own_version = FORMAT.partition("/")
    if name == own_name and re.fullmatch(r"[0-9]{1,9}", version) and int(version) > int(own_version):
        cause = f"format '{stated}' is newer than {FORMAT}, which this version reads: upgrade graphnet"
    else:
        cause = (
            f"not a graph file: format is '{stated}', not '{FORMAT}'" if stated else f"no member 'format': '{FORMAT}'"
        )
    raise GraphFormatError(cause, where="$.format")


class _Twice:
    """Stands in a decoded document for an object that has a key twice."""

    def __init__(self, key: str) -> None:
        self.key = key


def check_members(data: bytes) -> None:
    """Refuse a key that is there twice (JSON decoders let the last one win: a lost weight) and a missing format.

    `data` must have been decoded as a Graph before: its nesting is known to be harmless.
    """

    found_twice: list[_Twice] = []

    def hook(pairs: list[tuple[str, Any]]) -> Any:
        found = dict(pairs)
        if len(found) == len(pairs):
            return found
        counts = Counter(key for key, _ in pairs)
        found_twice.append(_Twice(next(key for key, count in counts.items() if count > 1)))
        return found_twice[-1]

    try:
        document = json.loads(data, object_pairs_hook=hook)
        for where, value in _walk("$", document) if found_twice else ():
            if isinstance(value, _Twice):
                raise GraphFormatError(f"key '{value.key}' is there twice", where=where)
    except ValueError as error:
        raise GraphFormatError(f"not valid JSON: {error}") from None
    except RecursionError:
        raise GraphFormatError("nested too deep") from None
    check_format(data)


def member(where: str, key: str) -> str:
    """The JSON path of a member: `$.weights["conv1.weight"]`, `$.nodes`."""
    return f"{where}.{key}" if key.isidentifier() and key.isascii() else f"{where}[{json.dumps(key[:200])}]"


def _walk(where: str, value: Any) -> Iterator[tuple[str, Any]]:
    yield where, value
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _walk(member(where, key), item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, (dict, list, _Twice)):
                yield from _walk(f"{where}[{index}]", item)


def _exact_path(data: bytes, where: str) -> str:
    """Replace each `[...]`, msgspec's word for "some key", by the key, found by halving the object.

    Members beside the path are cut away, so that the search is short. The path ends where the document has another form
    than the one that msgspec found wrong: of a key that is there twice, only the last one is seen here.
    """
    try:
        document = json.loads(data, parse_float=_finite)
    except (ValueError, RecursionError):
        return where
    exact, current, wanted = "$", document, _generic(where)
    step: str | int
    for name, index in _STEP.findall(where):
        if not _has(current, name, index):
            break
        if index == "...":
            key = _culprit(document, current, wanted)
            exact, step = member(exact, key), key
        elif index:
            current[:] = [current[int(index)]]
            exact, step = f"{exact}[{index}]", 0
        else:
            for other in _CONTAINERS & current.keys() - {name}:
                del current[other]
            exact, step = f"{exact}.{name}", name
        if isinstance(current, dict) and step not in current:
            break
        current = current[step]
    return exact


def _has(current: Any, name: str, index: str) -> bool:
    """Whether a step of a path can be taken from `current`; a missing member is one that a path may end with."""
    if index.isdigit():
        return isinstance(current, list) and int(index) < len(current)
    return isinstance(current, dict) and bool(name or current)


def _culprit(document: Any, entries: dict[str, Any], wanted: str) -> str:
    """The first key of `entries`, an object within `document`, without which the error would not be."""
    keys, kept = list(entries), dict(entries)
    while len(keys) > 1:
        half = keys[: len(keys) // 2]
        entries.clear()
        entries.update((key, kept[key]) for key in half)
        keys = half if _error_place(document) == wanted else keys[len(keys) // 2 :]
    entries.clear()
    entries.update((key, kept[key]) for key in keys)
    return keys[0]


def _error_place(document: Any) -> str:
    try:
        msgspec.json.decode(json.dumps(document), type=Graph)
    except msgspec.ValidationError as error:
        match = _WHERE.fullmatch(str(error))
        return _generic(match.group(2)) if match else ""
    except (msgspec.DecodeError, ValueError, RecursionError):  # what json takes and msgspec does not, behind the place
        return ""
    return ""


def _finite(text: str) -> float | None:
    """None for 1e999, which has no JSON spelling as a float but is as wrong when it is null."""
    number = float(text)
    return number if isfinite(number) else None


def _generic(where: str) -> str:
    return re.sub(r"\[\d+\]", "[]", where)
