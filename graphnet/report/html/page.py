"""Assembles the page: templates, styles, scripts and data in one file that asks the network for nothing."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from graphnet.errors import StoreError, UsageError
from graphnet.evaluate.records import Environment, Result
from graphnet.ir.fileio import write_atomic
from graphnet.ir.graph import Graph
from graphnet.report.grid import BASELINE
from graphnet.report.html import graphs as graph_files
from graphnet.report.html.data import overview
from graphnet.report.html.details import Quality, details
from graphnet.report.html.strings import LANGUAGES, texts
from graphnet.report.html.text import script_json

SCRIPTS = ("core.js", "table.js", "charts.js", "overview.js", "graph_page.js", "main.js")
DEFAULT_NAME = "report.html"


def write(page: str, path: Path) -> None:
    """Replace the file as a whole. Raises StoreError."""
    try:
        write_atomic(path, page.encode())
    except OSError as error:
        raise StoreError(
            f"cannot write the report {path}: {error.strerror or error}; give another place with -o"
        ) from error


def build(
    results: Sequence[Result],
    environments: Sequence[Environment] = (),
    *,
    baseline: str = BASELINE,
    language: str = "en",
    graphs: Iterable[Graph] = (),
    quality: Mapping[str, Quality] | None = None,
    figures: Sequence[Mapping[str, Any]] = (),
) -> str:
    """The page as HTML.

    `graphs` lend their tier and operators to results of the same structure hash. `quality` is of the emitted code by
    job key. `figures` has a mapping for each group of `groups.by_settings`, in their order; its `roofline`, a Plotly
    figure as `{"data": ..., "layout": ...}`, is shown if it is there. Raises UsageError: no results, none of the
    baseline, or a language that the page does not speak.
    """
    _check(results, baseline, language)
    hashes = {result.structure_hash for result in results}
    known = graph_files.facts(graph for graph in graphs if graph.stored_hash in hashes)
    plotly, script = Markup(get_plotlyjs()), Markup("\n".join(map(_asset, SCRIPTS)))
    return _templates().get_template("page.html").render(
        language=language, html_language={"en": "en", "zh": "zh-Hans"}[language], text=texts(language),
        policy=_policy(script, plotly), style=Markup(_asset("style.css")), plotly=plotly, script=script,
        strings=Markup(script_json({name: texts(name) for name in LANGUAGES})),
        overview=Markup(script_json(overview(results, environments, baseline, known))),
        details=Markup(script_json(details(results, baseline, known, quality or {}))),
        figures=Markup(script_json([dict(figure) for figure in figures])), version=version("graphnet-eval"),
    )  # fmt: skip


def _check(results: Sequence[Result], baseline: str, language: str) -> None:
    if language not in LANGUAGES:
        raise UsageError(f"the report has no language '{language}'; it has: {', '.join(LANGUAGES)}")
    if not results:
        raise UsageError("no results to report; `graphnet evaluate --output FOLDER` makes some")
    present = sorted({result.compiler for result in results})
    if baseline not in present:
        raise UsageError(
            f"no results of the baseline '{baseline}'; choose one with --baseline, there are: {', '.join(present)}"
        )


def _policy(*scripts: str) -> str:
    """Content-Security-Policy: these scripts by their digest, styles and images of the page itself, no network."""
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:;"
        " base-uri 'none'; form-action 'none'"
    )


@cache
def _templates() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("graphnet.report.html"), autoescape=True, undefined=jinja2.StrictUndefined
    )


def _asset(name: str) -> str:
    source, _, _ = _templates().loader.get_source(_templates(), name)  # type: ignore[union-attr]
    return source
