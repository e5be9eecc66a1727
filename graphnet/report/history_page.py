"""A history as one HTML page that needs nothing else: its steps, and a small chart of each series."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from graphnet.analyze.history import History, Series, changed_versions
from graphnet.errors import StoreError
from graphnet.ir.fileio import write_atomic
from graphnet.report.history_table import graph_text, run_text, step_text, told
from graphnet.report.html.text import script_json, visible

ENGLISH: Mapping[str, str] = {
    "language": "en",
    "title": "History of runs",
    "how": "Each point is the median time of one inference in a run, in ms, with its 95 % interval; lines are levels."
    " A triangle marks a run before which versions of packages changed.",
    "steps": "Steps",
    "none": "No step in any series.",
    "run": "run",
    "graph": "graph",
    "compiler": "compiler",
    "step": "step",
    "changed": "what changed",
    "no_version": "no version",
    "series": "Series",
}
"""Words of the page; another language is another such table."""

_TEMPLATE = """<!DOCTYPE html>
<html lang="{{ text.language }}"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ text.title }}</title>
<style>
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem; color: #1b1f24; background: #fff; }
table { border-collapse: collapse; margin: .5rem 0 1.5rem; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid #d8dde3; text-align: left; vertical-align: top; }
th { background: #f2f4f7; }
.slower { color: #b3261e; } .faster { color: #166534; } .note { color: #57606a; font-size: 13px; margin: 0; }
.all { display: grid; grid-template-columns: repeat(auto-fill, minmax(420px, 1fr)); gap: 1rem; }
.one { overflow-wrap: anywhere; } .one h3 { font-size: 15px; margin: 0; } .chart { height: 240px; }
</style></head><body>
<h1>{{ text.title }}</h1>
<p>{{ told(found) }}. {{ text.how }}</p>
<h2>{{ text.steps }}</h2>
{% if found.changes %}<table><thead><tr><th>{{ text.run }}</th><th>{{ text.graph }}</th><th>{{ text.compiler }}</th>
<th>{{ text.step }}</th><th>{{ text.changed }}</th></tr></thead><tbody>
{% for change in found.changes %}<tr><td>{{ run_text(change.after) | visible }}</td>
<td>{{ graph_text(change, found) | visible }}</td><td>{{ change.series.compiler | visible }}</td>
<td class="{{ '' if change.possible else 'slower' if change.step.ratio > 1 else 'faster' }}">
{{- step_text(change) | visible }}</td>
<td>{{ change.versions | join(', ') | visible or text.no_version }}</td></tr>
{% endfor %}</tbody></table>
{% else %}<p>{{ text.none }}</p>
{% endif %}<h2>{{ text.series }}</h2>
<div class="all">
{% for series in found.series %}<section class="one">
<h3>{{ series.graph | visible }}, {{ series.compiler | visible }}</h3>
<p class="note">{{ series.conditions | visible }}</p><div class="chart" data-index="{{ loop.index0 }}"></div></section>
{% endfor %}</div>
<script type="application/json" id="charts">{{ charts }}</script>
<script>{{ plotly }}</script>
<script>
const charts = JSON.parse(document.getElementById("charts").textContent);
const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries.filter((entry) => entry.isIntersecting)) {
    watcher.unobserve(entry.target);
    const { data, layout } = charts[Number(entry.target.dataset.index)];
    Plotly.newPlot(entry.target, data, layout, { responsive: true, displayModeBar: false });
  }
}, { rootMargin: "400px" });
document.querySelectorAll(".chart").forEach((place) => watcher.observe(place));
</script></body></html>
"""


def page(found: History, text: Mapping[str, str] = ENGLISH) -> str:
    """The page. Names are of strangers: whatever stands in one is shown as it is."""
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    environment.globals |= {"told": told, "run_text": run_text, "step_text": step_text, "graph_text": graph_text}
    environment.filters["visible"] = visible
    charts = Markup(script_json([chart(series) for series in found.series]))
    return environment.from_string(_TEMPLATE).render(
        found=found, text=text, charts=charts, plotly=Markup(get_plotlyjs())
    )  # fmt: skip


def write(found: History, path: Path) -> None:
    """Write the page as a whole or not at all. Raises StoreError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, page(found).encode())
    except OSError as error:
        raise StoreError(
            f"cannot write {path}: {error.strerror or error}; make room or choose another place with -o"
        ) from error


def chart(series: Series) -> dict[str, Any]:
    """A Plotly figure of one series, `{"data": ..., "layout": ...}`: points with intervals, then levels."""
    points = series.points
    changed = [(), *(changed_versions(a.versions, b.versions) for a, b in pairwise(points))]
    texts = [
        "<br>".join(map(_text, (run_text(point), *versions))) for point, versions in zip(points, changed, strict=True)
    ]
    measured = {
        "type": "scatter", "mode": "markers", "x": list(range(1, len(points) + 1)),
        "y": [point.seconds * 1e3 for point in points], "text": texts,
        "error_y": {
            "type": "data", "symmetric": False, "thickness": 1, "width": 2,
            "array": [(point.high - point.seconds) * 1e3 for point in points],
            "arrayminus": [(point.seconds - point.low) * 1e3 for point in points],
        },
        "marker": {
            "size": 6, "color": "#2563eb", "symbol": ["triangle-up" if versions else "circle" for versions in changed],
        },
        "hovertemplate": "%{text}<br>%{y:.4g} ms<extra></extra>",
    }  # fmt: skip
    layout = {
        "showlegend": False, "height": 240, "margin": {"l": 50, "r": 10, "t": 10, "b": 35},
        "xaxis": {"title": {"text": "run"}, "tickformat": "d"},
        "yaxis": {"title": {"text": "ms"}, "rangemode": "tozero"},
    }  # fmt: skip
    return {"data": [measured, _levels(series)], "layout": layout}


def _levels(series: Series) -> dict[str, Any]:
    """One line, broken at each step."""
    x: list[float | None] = []
    y: list[float | None] = []
    for level in series.fit.levels:
        x += [level.start + 0.5, level.end + 0.5, None]
        y += [level.seconds * 1e3, level.seconds * 1e3, None]
    return {
        "type": "scatter", "mode": "lines", "x": x, "y": y, "line": {"color": "#b3261e", "width": 1.5},
        "hoverinfo": "skip",
    }  # fmt: skip


def _text(name: str) -> str:
    """Plotly reads some HTML in its texts: names of others are none."""
    return visible(name).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
