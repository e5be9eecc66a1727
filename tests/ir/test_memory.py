"""The paused garbage collector comes back, whatever happens inside."""

from __future__ import annotations

import gc

import pytest

from graphnet.ir.memory import paused_collector


def test_collector_is_on_again_after_an_error() -> None:
    assert gc.isenabled()
    inside: dict[bool, int] = {}
    with pytest.raises(KeyError), paused_collector():
        inside[gc.isenabled()] = inside["no such key"]  # type: ignore[index]
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with paused_collector(), paused_collector():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
