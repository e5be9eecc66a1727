"""A comparison as one HTML page that needs nothing else: no network, no other file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import jinja2

from graphnet.analyze.compare import Comparison
from graphnet.errors import StoreError
from graphnet.ir.fileio import write_atomic
from graphnet.report.compare_tables import letters, ratio_text, time_text, trend
from graphnet.report.floor_text import sentences
from graphnet.report.grid import UNRESOLVED

ENGLISH: Mapping[str, str] = {
    "language": "en",
    "title": "Results side by side",
    "how": "Ratios are time in a set over time in A, with a 95 % bootstrap interval: below 1 is faster."
    f" {UNRESOLVED} stands before one whose interval holds 1, or that has none.",
    "sort": "Click a heading to sort.",
    "set": "set",
    "results": "results",
    "unlike": "The sets are unlike: ratios tell of this too",
    "what": "what",
    "times": "Median latency in ms, and ratios",
    "graph": "graph",
    "compiler": "compiler",
    "another": "another graph",
    "verdicts": "Verdicts that differ",
    "missing": "Missing",
    "absent": "missing",
    "means": "Geometric mean of the ratios, over what is ok in all sets",
    "count": "count",
    "all": "all",
}
"""Words of the page; another language is another such table."""

_TEMPLATE = """<!DOCTYPE html>
<html lang="{{ text.language }}"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ text.title }}</title>
<style>
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem; color: #1b1f24; background: #fff; }
table { border-collapse: collapse; margin: .5rem 0 1.5rem; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid #d8dde3; text-align: left; }
th { background: #f2f4f7; }
th button { all: unset; cursor: pointer; font-weight: 600; }
th button:focus-visible { outline: 2px solid #2563eb; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
.faster { color: #166534; } .slower { color: #b3261e; } .failed { color: #b3261e; } .note { color: #57606a; }
.unlike th { background: #fff3cd; }
</style></head><body>
<h1>{{ text.title }}</h1>
<p class="note">{{ text.how }} {{ text.sort }}</p>
{% for line in floors %}<p class="note floor">{{ line }}.</p>
{% endfor %}<ul>{% for name, label, count in sets %}
<li>{{ name }} = {{ label }} ({{ count }} {{ text.results }})</li>{% endfor %}
</ul>
{% if found.differences %}<h2>{{ text.unlike }}</h2>
<table class="unlike"><thead><tr><th>{{ text.what }}</th>
{%- for name, _, _ in sets %}<th>{{ name }}</th>{% endfor %}</tr></thead><tbody>
{% for difference in found.differences %}<tr><td>{{ difference.what }}</td>
{%- for value in difference["values"] %}<td>{{ value }}</td>{% endfor %}</tr>
{% endfor %}</tbody></table>
{% endif %}<h2>{{ text.times }}</h2>
<table class="sortable"><thead><tr><th>{{ text.graph }}</th><th>{{ text.compiler }}</th>
{%- for name, _, _ in sets %}<th>{{ name }}</th>
{%- if not loop.first %}<th>{{ name }}/{{ sets[0][0] }}</th>{% endif %}{% endfor %}</tr></thead><tbody>
{% for row in found.rows %}<tr><td>{{ row.graph }}</td><td>{{ row.compiler }}</td>
{%- for cell in row.cells %}
<td class="number{% if not cell or cell.seconds is none %} failed{% endif %}"
 {%- if cell and cell.seconds is not none %} data-value="{{ cell.seconds }}"{% endif %}>
{{- time_text(cell) if cell else text.absent }}</td>
{%- if not loop.first %}<td class="number {{ trend(cell) if cell else '' }}"
 {%- if cell and cell.ratio is not none %} data-value="{{ cell.ratio }}"{% endif %}>
{{- text.another if row.graph_changed else ratio_text(cell) if cell else '' }}</td>{% endif %}{% endfor %}</tr>
{% endfor %}</tbody></table>
{% for title, rows in lists if rows %}<h2>{{ title }}</h2>
<ul>{% for row in rows %}<li>{{ row.graph }}, {{ row.compiler }}:
{%- for cell in row.cells %} {{ sets[loop.index0][0] }} {{ cell.outcome if cell else text.absent }}
{%- if not loop.last %},{% endif %}{% endfor %}</li>
{% endfor %}</ul>
{% endfor %}<h2>{{ text.means }}</h2>
<table class="sortable"><thead><tr><th>{{ text.compiler }}</th><th>{{ text.count }}</th>
{%- for name, _, _ in sets[1:] %}<th>{{ name }}/{{ sets[0][0] }}</th>{% endfor %}</tr></thead><tbody>
{% for mean in found.means %}<tr><td>{{ mean.compiler or text.all }}</td>
<td class="number" data-value="{{ mean.count }}">{{ mean.count }}</td>
{%- for ratio in mean.ratios %}<td class="number" data-value="{{ ratio }}">{{ "%.3f" % ratio }}</td>
{%- else %}{% for _ in sets[1:] %}<td></td>{% endfor %}{% endfor %}</tr>
{% endfor %}</tbody></table>
<script>
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  table.querySelectorAll("th").forEach((head, column) => {
    const button = document.createElement("button");
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const upwards = head.getAttribute("aria-sort") !== "ascending";
      table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", upwards ? "ascending" : "descending");
      const key = (row) => {
        const cell = row.cells[column];
        return cell.dataset.value === undefined ? null : Number(cell.dataset.value);
      };
      const order = (left, right) => {
        const a = key(left), b = key(right);
        if (a === null && b === null) {
          const texts = [left, right].map((row) => row.cells[column].textContent);
          return (upwards ? 1 : -1) * texts[0].localeCompare(texts[1]);
        }
        if (a === null || b === null) return a === null ? 1 : -1;
        return (upwards ? 1 : -1) * (a - b);
      };
      body.append(...[...body.rows].sort(order));
    });
  });
}
</script></body></html>
"""


def page(found: Comparison, text: Mapping[str, str] = ENGLISH) -> str:
    """The page. Names are of strangers: whatever stands in one is shown as it is."""
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    environment.globals |= {"time_text": time_text, "ratio_text": ratio_text, "trend": trend}
    sets = list(zip(letters(len(found.labels)), found.labels, found.counts, strict=True))
    lists = [
        (text["verdicts"], [row for row in found.rows if row.changed]),
        (text["missing"], [row for row in found.rows if row.missing]),
    ]
    return environment.from_string(_TEMPLATE).render(
        found=found, text=text, sets=sets, lists=lists, floors=sentences(found.floors)
    )


def write(found: Comparison, path: Path) -> None:
    """Write the page as a whole or not at all. Raises StoreError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, page(found).encode())
    except OSError as error:
        raise StoreError(
            f"cannot write {path}: {error.strerror or error}; make room or choose another place"
        ) from error
