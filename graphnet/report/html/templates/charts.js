// Plotly figures. Plotly reads a part of HTML in labels and hover texts, so strangers' names go through `plain` first.
"use strict";

// Okabe and Ito's colours; yellow and black are exchanged for what can be seen on both grounds.
const LIGHT = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8A7A00", "#4D4D4D"];
const DARK = ["#4FA8E0", "#F08040", "#2FC99B", "#E29AC4", "#F5B93D", "#8CD0F7", "#E8DC4A", "#C9C9C9"];
const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "cross", "star", "triangle-down", "pentagon", "x", "hexagon"];
const DASHES = ["solid", "solid", "solid", "solid", "solid", "solid", "solid", "solid", "dash", "dashdot"];
const COMPILERS = [...new Set(OVERVIEW.groups.flatMap((item) => item.columns))];

function styleOf(column) {
  const index = Math.max(0, COMPILERS.indexOf(column)), colors = state.dark ? DARK : LIGHT;
  return { color: colors[index % colors.length], symbol: SYMBOLS[index % SYMBOLS.length], dash: DASHES[index % DASHES.length] };
}

const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
const brief = (text, most = 28) => plain(text.length > most ? text.slice(0, most - 1) + "…" : text);
const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const narrow = () => innerWidth < 640;

function axis(title, extra = {}) {
  return {
    title: { text: title, standoff: 8 }, gridcolor: token("--line"), linecolor: token("--line"), zerolinecolor: token("--line"),
    automargin: true, fixedrange: matchMedia("(pointer: coarse)").matches, ...extra,
  };
}

function layout(extra) {
  return {
    font: { family: getComputedStyle(document.body).fontFamily, size: narrow() ? 11 : 13, color: token("--text") },
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", margin: { l: 10, r: 16, t: 10, b: 10 }, autosize: true,
    hoverlabel: { bgcolor: token("--surface"), bordercolor: token("--faint"), font: { color: token("--text") }, align: "left" },
    legend: { orientation: "h", x: 0, y: 1, xanchor: "left", yanchor: "bottom", traceorder: "normal" }, dragmode: false, ...extra,
  };
}

const CONFIG = { responsive: true, displaylogo: false, displayModeBar: false };
const drawn = new Map();

// A place for a chart, drawn once it is in the page, and again whenever colours change.
function chart(id, label, height, make) {
  const place = h("div", { id, class: "chart", style: `height:${height}px` });
  drawn.set(id, make);
  return h("figure", { role: "img", "aria-label": label }, place);
}

function drawChart(id) {
  const place = document.getElementById(id), figure = drawn.get(id)();
  Plotly.react(place, figure.data, figure.layout, CONFIG);
}

let drawing = 0;

// One after the other with the page alive between them; on paper all at once. `data-charts` tells when the last is there.
function drawCharts(atOnce = false) {
  const turn = ++drawing, waiting = [...drawn.keys()], root = document.documentElement;
  root.dataset.charts = "drawing";
  const next = () => {
    if (turn !== drawing) return;
    const id = waiting.shift();
    if (id === undefined) { root.dataset.charts = "drawn"; performance.mark("charts-drawn"); return; }
    drawChart(id);
    setTimeout(next);
  };
  if (document.readyState === "loading") { addEventListener("DOMContentLoaded", next); return; } // Plotly comes last
  if (!atOnce) { setTimeout(next); return; }
  waiting.forEach(drawChart);
  root.dataset.charts = "drawn";
}

// Ticks of a logarithmic axis of factors at 1, 2 and 5 of each decade that is used, thinned where they would collide.
function factorTicks(low, high) {
  const spread = Math.log10(high / low), steps = spread > 3 ? [1] : spread > 1.5 || narrow() ? [1, 3] : [1, 2, 5];
  const ticks = [];
  for (let decade = Math.floor(Math.log10(low)) - 1; decade <= Math.log10(high) + 1; decade++)
    for (const step of steps) ticks.push(step * 10 ** decade);
  return ticks.filter((tick) => tick >= low && tick <= high);
}

const factorText = (value) => (value < 1 ? String(Number(value.toPrecision(1))) : Math.round(value).toLocaleString("en-US"));

function logAxis(title, values, ending = "", extra = {}) {
  const low = Math.min(...values) / 1.3, high = Math.max(...values) * 1.3, ticks = factorTicks(low, high);
  return axis(title, {
    range: [Math.log10(low), Math.log10(high)], tickvals: ticks.map(Math.log10), zeroline: false,
    ticktext: ticks.map((tick) => factorText(tick) + ending), ...extra,
  });
}

// Distributions on a logarithmic axis, a compiler a line. Logarithms are taken here: Plotly shapes violins before it does.
function strips(lines, title, ending, mark) {
  const all = lines.flatMap((line) => line.values);
  const data = lines.map((line) => ({
    type: "violin", orientation: "h", x: line.values.map(Math.log10), y0: brief(line.name), name: brief(line.name), points: "all", jitter: 0.55,
    pointpos: 0, spanmode: "hard", scalemode: "width", width: 0.85, showlegend: false, text: line.texts, hoverinfo: "text",
    hoveron: "points", line: { color: line.color, width: 1 }, fillcolor: line.color + "22", meanline: { visible: false },
    marker: { color: line.color, size: 5, opacity: 0.75 },
  }));
  data.push({
    type: "scatter", mode: "markers", x: lines.map((line) => Math.log10(median(line.values))), y: lines.map((line) => brief(line.name)),
    marker: { symbol: "line-ns", size: 26, line: { width: 3, color: token("--text") } }, showlegend: false, hoverinfo: "text",
    text: lines.map((line) => `${brief(line.name)}<br>${say("median")}: ${line.format(median(line.values))}`),
  });
  const shapes = mark ? [{ type: "line", x0: 0, x1: 0, yref: "paper", y0: 0, y1: 1, line: { color: token("--faint"), width: 1.5, dash: "dot" } }] : [];
  return {
    data, layout: layout({
      xaxis: logAxis(title, all, ending), yaxis: axis("", { type: "category", autorange: "reversed" }), shapes,
      hovermode: "closest", violingap: 0.1,
    }),
  };
}

const linesHeight = (count) => 90 + 46 * Math.max(2, count);

function cellsOf(column, wanted) {
  return group().rows.map((row) => ({ row, cell: row.cells[column] })).filter(({ cell }) => cell && wanted(cell));
}

function speedupLines() {
  return group().columns.map((name, column) => ({ name, column, found: cellsOf(column, (cell) => cell.speedup !== undefined) }))
    .filter((line) => line.found.length && !group().baseline_columns.includes(line.column))
    .map(({ name, found }) => ({
      name, color: styleOf(name).color, values: found.map(({ cell }) => cell.speedup), format: times,
      texts: found.map(({ row, cell }) => `<b>${brief(row.label, 40)}</b><br>${brief(name)}: ${speedupWithInterval(cell)}<br>${time(cell.median)}`),
    }));
}

function memoryLines() {
  return group().columns.map((name, column) => ({ name, found: cellsOf(column, (cell) => cell.memory?.own) }))
    .filter((line) => line.found.length).map(({ name, found }) => ({
      name, color: styleOf(name).color, values: found.map(({ cell }) => cell.memory.own / MIB), format: (value) => size(value * MIB),
      texts: found.map(({ row, cell }) => `<b>${brief(row.label, 40)}</b><br>${brief(name)}: ${size(cell.memory.own)}`),
    }));
}

function scoreFigure() {
  const t = OVERVIEW.levels, data = [];
  group().scores.forEach((score, column) => {
    if (!score) return;
    const name = group().columns[column], style = styleOf(name), line = { color: style.color, width: 2, dash: style.dash };
    const text = t.map((level, i) => `<b>${brief(name)}</b><br>t = ${level}<br>S = ${score.S[i].toFixed(3)}<br>ES = ${score.ES[i].toFixed(3)}`);
    data.push({ type: "scatter", mode: "lines+markers", name: brief(name), x: t, y: score.ES.map(Math.log10), line, text, hoverinfo: "text", marker: { symbol: style.symbol, size: 7, color: style.color } });
    const right = t.map((level, i) => i).filter((i) => t[i] >= 0);
    data.push({ type: "scatter", mode: "lines", x: right.map((i) => t[i]), y: right.map((i) => Math.log10(score.S[i])), line: { ...line, width: 1.5, dash: "dot" }, hoverinfo: "skip", showlegend: false });
  });
  const values = group().scores.filter(Boolean).flatMap((score) => [...score.S, ...score.ES]);
  return {
    data, layout: layout({
      xaxis: axis(say("tolerance"), { dtick: narrow() ? 2 : 1, zeroline: true }), hovermode: "closest",
      yaxis: logAxis(say("score"), values),
    }),
  };
}

function paybackFigure() {
  const data = [], spent = [], needed = [];
  group().columns.forEach((name, column) => {
    const found = cellsOf(column, (cell) => cell.payback !== undefined);
    if (!found.length) return;
    const style = styleOf(name), x = found.map(({ cell }) => cell.compile), y = found.map(({ cell }) => Math.max(1, cell.payback));
    spent.push(...x);
    needed.push(...y);
    data.push({
      type: "scatter", mode: "markers", name: brief(name), x: x.map(Math.log10), y: y.map(Math.log10), hoverinfo: "text",
      marker: { color: style.color, symbol: style.symbol, size: 7, opacity: 0.65 },
      text: found.map(({ row, cell }) => `<b>${brief(row.label, 40)}</b><br>${brief(name)}<br>${say("compile")}: ${time(cell.compile)}, ${runs(cell.payback)}<br>${say("speedup")}: ${speedupWithInterval(cell)}`),
    });
  });
  return { data, layout: layout({ xaxis: logAxis(say("compile_axis"), spent), yaxis: logAxis(say("payback_axis"), needed), hovermode: "closest" }) };
}

// A figure that was made outside, on the page's own ground; traces of compilers look as they do everywhere.
function givenFigure(figure) {
  const base = layout({}), data = figure.data.map((trace) => {
    if (!COMPILERS.includes(trace.name)) return trace;
    const { color, symbol } = styleOf(trace.name);
    return { ...trace, name: brief(trace.name), marker: { ...trace.marker, color, symbol } };
  });
  const merged = { ...figure.layout, ...base, margin: figure.layout?.margin ?? base.margin };
  for (const key of Object.keys(merged).filter((key) => /^[xy]axis\d*$/.test(key)))
    merged[key] = { ...axis(""), ...(merged[key].type === "log" ? { dtick: 1 } : {}), ...merged[key], gridcolor: token("--line"), linecolor: token("--line"), zerolinecolor: token("--line") };
  delete merged.template;
  delete merged.title;
  return { data, layout: merged };
}

function latencyFigure(row) {
  const data = [], all = [];
  group().columns.forEach((name, column) => {
    const cell = row.cells[column];
    if (!cell || cell.verdict !== "ok") return;
    const style = styleOf(name), point = cell.median * 1e3, ends = [cell.low * 1e3, cell.high * 1e3].map(Math.log10);
    all.push(cell.low * 1e3, cell.high * 1e3);
    data.push({ type: "scatter", mode: "lines", x: ends, y: [brief(name), brief(name)], line: { color: style.color, width: 7 }, opacity: 0.45, hoverinfo: "skip", showlegend: false });
    data.push({
      type: "scatter", mode: "markers", x: [Math.log10(point)], y: [brief(name)], marker: { color: style.color, symbol: style.symbol, size: 11 },
      showlegend: false, hoverinfo: "text",
      hovertext: [`<b>${brief(name)}</b><br>${time(cell.median)} (${time(cell.low)} – ${time(cell.high)})<br>${cell.runs} ${say("runs")}`],
    });
    data.push({
      type: "scatter", mode: "text", x: [ends[1]], y: [brief(name)], text: ["\u00a0\u00a0\u00a0" + time(cell.median)], textposition: "middle right",
      cliponaxis: false, showlegend: false, hoverinfo: "skip",
    });
  });
  return { data, layout: layout({ xaxis: logAxis(say("latency_axis"), all.map((value, i) => (i % 2 ? value * (narrow() ? 2.5 : 1.25) : value))), yaxis: axis("", { type: "category", autorange: "reversed" }), hovermode: "closest" }) };
}

// Sequential lightness within each hue, so that neighbours differ without colour too.
const OPERATOR_COLORS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8A7A00", "#332288"];

function operatorFigure(row, found) {
  const totals = {};
  for (const detail of found) for (const [name, value] of Object.entries(detail?.operators ?? {})) totals[name] = (totals[name] ?? 0) + value;
  const names = Object.keys(totals).filter((name) => name !== "").sort((a, b) => totals[b] - totals[a]);
  const kept = names.slice(0, OPERATOR_COLORS.length), rest = new Set([...names.slice(OPERATOR_COLORS.length), ""]);
  const columns = group().columns.map((name, column) => ({ name, column })).filter(({ column }) => found[column]?.kernels);
  const bar = (name, values, color) => ({
    type: "bar", orientation: "h", name, y: columns.map((item) => brief(item.name)), x: values, marker: { color, line: { color: token("--surface"), width: 1 } }, hoverinfo: "text", textposition: "none",
    text: columns.map((item, i) => `<b>${brief(item.name)}</b><br>${name}: ${time(values[i] / 1e3)}${row.cells[item.column].median ? " (" + percent(values[i] / row.cells[item.column].median / 1e3) + ")" : ""}`),
  });
  const sum = (detail, wanted) => Object.entries(detail.operators ?? {}).reduce((all, [name, value]) => all + (wanted(name) ? value : 0), 0) / 1e3;
  const data = kept.map((name, i) => bar(brief(name), columns.map(({ column }) => sum(found[column], (other) => other === name)), OPERATOR_COLORS[i]));
  const others = columns.map(({ column }) => sum(found[column], (name) => rest.has(name)));
  if (others.some((value) => value > 0)) data.push(bar(say("other_operators"), others, "#8C8C8C"));
  const outside = columns.map(({ column }) => Math.max(0, (row.cells[column].median ?? 0) * 1e3 - sum(found[column], () => true)));
  data.push(bar(say("outside"), outside, token("--line")));
  return { data, layout: layout({ barmode: "stack", xaxis: axis(say("time_axis"), { rangemode: "tozero" }), yaxis: axis("", { type: "category", autorange: "reversed" }), hovermode: "closest" }) };
}
