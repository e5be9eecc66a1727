"""What every test may rely on."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _subnormals_stay() -> Iterator[None]:
    """Compilers flush subnormals when configured in this process; numpy in the next test must not."""
    yield
    if "torch" in sys.modules:
        sys.modules["torch"].set_flush_denormal(False)
