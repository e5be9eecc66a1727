"""What `graphnet report` does: read the results, build the page, write it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graphnet.analyze import code_quality, roofline
from graphnet.analyze.code_quality import CodeQuality
from graphnet.analyze.groups import by_settings
from graphnet.dataset import catalog
from graphnet.errors import UsageError
from graphnet.evaluate import machine
from graphnet.evaluate.records import Environment, Result
from graphnet.evaluate.store import Store
from graphnet.ir.graph import Graph
from graphnet.report import roofline_plot
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
        results, environments = store.results(), machine.with_known_here(store.environments())
    html = page.build(
        results, environments, baseline=baseline, language=language, graphs=_graphs(graphs), quality=_quality(where),
        figures=[_figures(group, environments) for group in by_settings(results).values()],
    )  # fmt: skip
    page.write(html, path)
    return path


def _quality(where: str) -> Mapping[str, CodeQuality]:
    """What `graphnet codegen` stored beside the code; nothing for a database."""
    return code_quality.load(where) if Path(where).is_dir() else {}


def _figures(results: Sequence[Result], environments: Sequence[Environment]) -> dict[str, Any]:
    """The roofline of one group of settings, where its machine's peaks are known."""
    peaks = roofline.peaks_of(results[0], environments)
    if peaks is None:
        return {}
    return {"roofline": json.loads(roofline_plot.figure(peaks, results).to_json())}


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
