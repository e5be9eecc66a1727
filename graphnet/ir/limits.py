"""How much a graph file may hold: one limit for the file, what it decompresses to, and the exact elements within."""

from __future__ import annotations

import os
import re

from graphnet.errors import GraphFormatError

DEFAULT_MAX_BYTES = 2 << 30


def max_bytes() -> int:
    """`GRAPHNET_MAX_BYTES`, or 2 GiB. Raises GraphFormatError where the variable is no number."""
    text = os.environ.get("GRAPHNET_MAX_BYTES", "")
    if not text:
        return DEFAULT_MAX_BYTES
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise GraphFormatError(f"GRAPHNET_MAX_BYTES is '{text}'; it must be a number of bytes, such as {1 << 30}")
    return int(text)


def too_big(what: str, limit: int) -> str:
    """The cause of an error: `what` passes the limit."""
    return f"the {what} is larger than {limit:,} bytes; raise GRAPHNET_MAX_BYTES if you trust it"
