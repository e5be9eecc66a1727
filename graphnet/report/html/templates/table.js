// The table of graphs by compilers: what it shows, its order, its filters, and what a cell tells when pointed at.
"use strict";

const tip = document.getElementById("tip");

function valueOf(cell) {
  if (!cell || cell.verdict !== "ok") return null;
  if (state.table.show === "verdict") return 0;
  return state.table.show === "latency" ? cell.median : cell.speedup ?? null;
}

function cellText(cell) {
  if (!cell) return "–";
  if (cell.verdict !== "ok" || state.table.show === "verdict") return `${MARKS[cell.verdict] ?? "?"} ${say(cell.verdict)}`;
  if (state.table.show === "latency") return milliseconds(cell.median);
  return cell.speedup === undefined ? "–" : speedupText(cell);
}

// Blue for faster and orange for slower than the baseline, full at a factor of 8; latency against the row's fastest.
function cellColor(cell, row) {
  const value = valueOf(cell);
  if (value === null || state.table.show === "verdict" || (state.table.show === "speedup" && cell.unresolved)) return "";
  if (state.table.show === "speedup") {
    const strength = Math.max(-1, Math.min(1, Math.log2(value) / 3));
    return `rgba(var(${strength < 0 ? "--slower" : "--faster"}), ${(Math.abs(strength) * 0.6).toFixed(3)})`;
  }
  const best = Math.min(...row.cells.map(valueOf).filter((other) => other !== null));
  return `rgba(var(--rank), ${(Math.min(1, Math.log2(value / best) / 4) * 0.6).toFixed(3)})`;
}

function visibleRows() {
  const wanted = state.table, name = wanted.name.trim().toLowerCase();
  const hasVerdict = (row) => row.cells.some((cell) => cell &&
    (wanted.verdict === "any" ? cell.verdict !== "ok" : cell.verdict === wanted.verdict));
  const rows = group().rows.filter((row) =>
    (!wanted.subset || row.subset === wanted.subset) && (!wanted.tier || (row.tier || "unknown") === wanted.tier) &&
    (!wanted.verdict || hasVerdict(row)) &&
    (!name || row.label.toLowerCase().includes(name) || row.graph_id.toLowerCase().includes(name)));
  if (wanted.sort === -1 && wanted.ascending) return rows;
  const sign = wanted.ascending ? 1 : -1;
  if (wanted.sort === -1) return rows.sort((a, b) => sign * a.label.localeCompare(b.label));
  const keyed = (row) => (state.table.show === "verdict"
    ? (row.cells[wanted.sort] ? verdictText(row.cells[wanted.sort]) : null) : valueOf(row.cells[wanted.sort]));
  return rows.sort((a, b) => {
    const first = keyed(a), second = keyed(b);
    if (first === null || second === null) return (first === null) - (second === null);
    return sign * (first < second ? -1 : first > second ? 1 : 0);
  });
}

function cellFacts(cell) {
  const list = [];
  if (cell.median !== undefined) {
    list.push([say("median"), time(cell.median)], [say("interval"), `${time(cell.low)} – ${time(cell.high)}`],
      [say("minimum"), time(cell.fastest)], [say("runs"), String(cell.runs)]);
  }
  if (cell.speedup !== undefined) list.push([say("speedup"), speedupWithInterval(cell)]);
  list.push([say("level"), cell.level === undefined ? say("never") : String(cell.level)]);
  if (cell.compile !== undefined) list.push([say("compile"), time(cell.compile)]);
  if (cell.noise !== undefined) list.push([say("noise"), percent(cell.noise, 1)]);
  if (cell.notes) list.push([say("notes"), cell.notes.join("; ")]);
  if (cell.message) list.push([say("message"), cell.message]);
  return list;
}

function showTip(row, column, element) {
  const cell = row.cells[column];
  tip.replaceChildren(h("b", { class: "name" }, `${row.label} · ${group().columns[column]}`),
    h("span", {}, cell ? verdictText(cell) : say("not_run")), cell ? facts(cellFacts(cell)) : "");
  tip.hidden = false;
  const target = element.getBoundingClientRect(), own = tip.getBoundingClientRect();
  const below = target.bottom + 6, fits = below + own.height < innerHeight;
  tip.style.left = Math.max(8, Math.min(target.left, innerWidth - own.width - 8)) + "px";
  tip.style.top = Math.max(8, fits ? below : target.top - own.height - 6) + "px";
}

const hideTip = () => { tip.hidden = true; };

function tableCell(row, column) {
  const cell = row.cells[column], failed = cell && cell.verdict !== "ok";
  return h("td", {
    class: failed ? "failed" : cell ? null : "none", tabindex: -1, "aria-describedby": "tip",
    "data-column": column, style: failed ? null : `background-color:${cellColor(cell, row)}`,
  }, cellText(cell));
}

function bodyRows() {
  return visibleRows().map((row) => h("tr", { "data-slug": row.slug },
    h("th", { scope: "row", class: "name", title: row.label }, h("a", { href: graphAddress(row) }, row.label)),
    row.cells.map((_, column) => tableCell(row, column))));
}

function headCell(text, column) {
  const wanted = state.table, sorted = wanted.sort === column && !(column === -1 && wanted.ascending && !wanted.chosen);
  return h("th", { scope: "col", "aria-sort": sorted ? (wanted.ascending ? "ascending" : "descending") : "none" },
    column >= 0 ? swatch(text) : null,
    h("button", { type: "button", "data-sort": column, title: say("sort_by", { name: text }), onclick: () => sortBy(column) }, text),
    h("span", { class: "on-paper", "aria-hidden": "true" }, text)); // browsers repeat text on every sheet, but no buttons
}

// Numbers first by what is best: the largest speedup, the shortest latency.
function sortBy(column) {
  const wanted = state.table, first = !(column >= 0 && wanted.show === "speedup");
  wanted.ascending = wanted.sort === column && wanted.chosen ? !wanted.ascending : first;
  Object.assign(wanted, { sort: column, chosen: true });
  drawTable();
  document.querySelector(`[data-sort="${column}"]`).focus();
}

function tableLegend() {
  if (state.table.show === "speedup")
    return h("p", { class: "legend" }, say("legend_slower", { name: OVERVIEW.baseline }), h("i", { class: "ramp-speedup" }), say("legend_faster"), `  ${UNRESOLVED} ${say("legend_unresolved")}`);
  if (state.table.show === "latency")
    return h("p", { class: "legend" }, `${say("milliseconds")}:`, say("legend_best"), h("i", { class: "ramp-latency" }), say("legend_slow"));
  return h("p", { class: "legend" }, Object.entries(MARKS).map(([name, mark]) => `${mark} ${say(name)}`).join("   "));
}

function drawTable() {
  hideTip();
  const place = document.getElementById("heat"), rows = bodyRows(), all = group().rows.length;
  const shown = say("shown_of", { shown: rows.length, all });
  const table = h("table", { class: "heat", onmouseover: pointed, onmouseout: hideTip, onfocusin: pointed, onfocusout: hideTip, onkeydown: moved },
    h("thead", {}, h("tr", {}, headCell(say("graph"), -1), group().columns.map((name, column) => headCell(name, column)))),
    h("tbody", {}, rows.length ? rows : h("tr", {}, h("td", { colspan: group().columns.length + 1 }, say("no_match")))));
  place.replaceChildren(h("p", { class: "faint", role: "status", id: "count" }, shown), tableLegend(),
    h("div", { class: "scroll tall", role: "region", "aria-label": say("table") }, table));
  const first = table.querySelector("td[data-column]");
  if (first) first.tabIndex = 0;
}

function cellAt(target) {
  const element = target.closest("td[data-column]");
  const row = element && group().rows.find((item) => item.slug === element.parentElement.dataset.slug);
  return row ? { element, row, column: Number(element.dataset.column) } : null;
}

function pointed(event) {
  const found = cellAt(event.target);
  if (found) showTip(found.row, found.column, found.element);
}

function moved(event) {
  const found = cellAt(event.target);
  if (event.key === "Escape") hideTip();
  if (!found) return;
  if (event.key === "Enter") { location.hash = graphAddress(found.row); return; }
  const line = found.element.parentElement, step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  const other = step ? line.querySelector(`[data-column="${found.column + step}"]`)
    : { ArrowUp: line.previousElementSibling, ArrowDown: line.nextElementSibling }[event.key]
      ?.querySelector(`[data-column="${found.column}"]`);
  if (!other) return;
  event.preventDefault();
  found.element.tabIndex = -1;
  other.tabIndex = 0;
  other.focus();
}

function choice(name, label, options) {
  const changed = (event) => { state.table[name] = event.target.value; drawTable(); };
  return h("label", {}, label, h("select", { id: "filter-" + name, onchange: changed },
    options.map(([value, text]) => h("option", { value, selected: state.table[name] === value }, text))));
}

function tableControls() {
  const distinct = (values) => [...new Set(values)].sort();
  const cells = group().rows.flatMap((row) => row.cells).filter(Boolean);
  const verdicts = distinct(cells.map((cell) => cell.verdict));
  const tiers = distinct(group().rows.map((row) => row.tier || "unknown"));
  const typed = (event) => { state.table.name = event.target.value; drawTable(); };
  const reset = () => { Object.assign(state.table, { subset: "", tier: "", verdict: "", name: "", sort: -1, ascending: true, chosen: false }); drawPage(); };
  return h("div", { class: "controls" },
    choice("show", say("show"), ["speedup", "latency", "verdict"].map((name) => [name, say(name)])),
    h("label", {}, say("name"), h("input", { type: "search", id: "filter-name", value: state.table.name, oninput: typed })),
    choice("subset", say("subset"), [["", say("all")], ...distinct(group().rows.map((row) => row.subset)).map((name) => [name, name || say("unknown")])]),
    choice("tier", say("tier"), [["", say("all")], ...tiers.map((name) => [name, name === "unknown" ? say("unknown") : name])]),
    choice("verdict", say("verdict"), [["", say("all")], ["any", say("any_failure")], ...verdicts.map((name) => [name, say(name)])]),
    h("button", { type: "button", id: "reset", onclick: reset }, say("reset")));
}
