"""The page of coverage says what the gap tables say."""

from __future__ import annotations

from tests.conformance import coverage


def test_the_page_is_current() -> None:
    assert coverage.PAGE.read_text() == coverage.page(), "run: python -m tests.conformance.coverage"


def test_numbers_come_from_the_tables() -> None:
    text = coverage.page()
    assert "| torch | 1632 | 1577 | 96.6% | 7 | 18 | 30 |" in text
    assert "| Bernoulli | 3 | 0 | 0 |" in text
    assert "| Abs | 12 | all | all |" in text
