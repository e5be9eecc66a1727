"""What `graphnet report` does: read the results, build the page, write it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from graphnet.dataset import catalog
from graphnet.errors import UsageError
from graphnet.evaluate.store import Store
from graphnet.ir.graph import Graph
from graphnet.report.html import page

FILE_NAME = "report.html"


def report(
    where: str, output: Path | None = None, *, baseline: str, language: str = "en", graphs: Sequence[str] = ()
) -> Path:  # fmt: skip
    """Write the page of the results at `where` (a folder, a `.db` file or a database URL) and return its path.

    Raises StoreError (nothing to read, or no place to write to), UsageError and, for a bad file among `graphs`,
    GraphFormatError.
    """
    path = output or _beside(where)
    with Store(where, create=False) as store:
        results, environments = store.results(), store.environments()
    html = page.build(results, environments, baseline=baseline, language=language, graphs=_graphs(graphs))
    page.write(html, path)
    return path


def _beside(where: str) -> Path:
    if "://" in where:
        return Path(FILE_NAME)
    return (Path(where).parent if Path(where).suffix == ".db" else Path(where)) / FILE_NAME


def _graphs(where: Sequence[str]) -> list[Graph]:
    """Graphs of `where`; of the collection, if there is one, without it."""
    if where:
        return catalog.load_graphs(*where)
    try:
        return catalog.load_graphs()
    except UsageError:  # an installed package without a checkout: tiers stay unknown
        return []
