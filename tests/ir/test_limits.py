"""The one size limit and its environment variable."""

from __future__ import annotations

import pytest

from graphnet.errors import GraphFormatError
from graphnet.ir import limits


def test_default_and_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRAPHNET_MAX_BYTES", raising=False)
    assert limits.max_bytes() == 2_147_483_648
    monkeypatch.setenv("GRAPHNET_MAX_BYTES", "1000")
    assert limits.max_bytes() == 1000
    assert (
        limits.too_big("graph", 1000)
        == "the graph is larger than 1,000 bytes; raise GRAPHNET_MAX_BYTES if you trust it"
    )


@pytest.mark.parametrize("text", ["2G", "-1", "1e9", " 5", "9" * 30])
def test_not_a_number_of_bytes(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHNET_MAX_BYTES", text)
    with pytest.raises(GraphFormatError, match="must be a number of bytes, such as 1073741824"):
        limits.max_bytes()
