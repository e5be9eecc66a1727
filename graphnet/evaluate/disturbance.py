"""Stub."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphnet.evaluate.records import Block


def take(pids: Sequence[int]) -> int:
    return 0


def between(before: int, after: int) -> dict[str, Any]:
    return {}


def disturbed(block: Block, threads: int, cpus: int) -> str:
    return ""
