from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reference outputs of a test stay in its folder; the programs of `cheats.py` can be imported by children."""
    monkeypatch.setenv("GRAPHNET_CACHE", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
