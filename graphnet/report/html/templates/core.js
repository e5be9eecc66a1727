// State of the page, texts, number formats, and the one way in which elements are made. Names of graphs, compilers and
// kernels are strangers' text: it reaches the page as text nodes and attributes only, never as markup.
"use strict";

const embedded = (id) => JSON.parse(document.getElementById(id).textContent);
const STRINGS = embedded("strings-data");
const OVERVIEW = embedded("overview-data");
const FIGURES = embedded("figures-data");
const state = {
  language: document.documentElement.dataset.language, dark: false, group: 0,
  table: { show: "speedup", subset: "", tier: "", verdict: "", name: "", sort: -1, ascending: true },
};
let parsedDetails = null;

function details() {
  parsedDetails ??= embedded("details-data");
  return parsedDetails;
}

const group = () => OVERVIEW.groups[state.group];

function say(name, values = {}) {
  const text = STRINGS[state.language][name] ?? name;
  return text.replace(/\{(\w+)\}/g, (whole, key) => (key in values ? values[key] : whole));
}

// h("td", {class: "left"}, "text", node): attributes that are undefined, null or false are left out.
function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

const FIGURE_SPACE = "\u2007", POINT_SPACE = "\u2008";

// Milliseconds with three significant digits, padded so that decimal points stand below each other in a right-aligned
// column whose longest fraction has `most` digits.
function milliseconds(seconds, most = 3) {
  const value = seconds * 1e3, decimals = decimalsOf(value, 3);
  if (!most) return value.toFixed(0);
  return value.toFixed(decimals) + (decimals ? "" : POINT_SPACE) + FIGURE_SPACE.repeat(most - decimals);
}

const longestFraction = (all) => Math.max(0, ...all.filter((s) => s !== undefined && s !== null).map((s) => decimalsOf(s * 1e3, 3)));

function decimalsOf(value, most) {
  if (value === 0) return 0;
  return Math.min(most, Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value)))));
}

const three = (value, most = 3) => (value === 0 ? "0" : value.toFixed(decimalsOf(value, most)));
const times = (value) => (value < 0.01 ? value.toFixed(3) : value < 100 ? value.toFixed(2) : value.toFixed(0)) + "×";
const UNRESOLVED = "~";
const speedupText = (cell) => (cell.unresolved ? UNRESOLVED : "") + times(cell.speedup);
const percent = (value, decimals = 0) => (value * 100).toFixed(decimals) + " %";
const MIB = 1048576;

function time(seconds) {
  if (seconds >= 120) return three(seconds / 60) + " min";
  if (seconds >= 1) return three(seconds) + " s";
  if (seconds >= 1e-3) return three(seconds * 1e3) + " ms";
  return three(seconds * 1e6) + " µs";
}

function big(value) {
  for (const [size, sign] of [[1e12, " T"], [1e9, " G"], [1e6, " M"], [1e3, " k"]])
    if (value >= size) return three(value / size, 2) + sign;
  return String(value);
}

function size(bytes) {
  for (const [unit, sign] of [[2 ** 30, " GiB"], [MIB, " MiB"], [1024, " KiB"]])
    if (bytes >= unit) return three(bytes / unit, 2) + sign;
  return bytes + " B";
}

// Keeps its three leading digits: nobody plans for the 1,234,567th run.
function runs(value) {
  if (value === 0) return say("at_once");
  const digits = Math.max(0, Math.floor(Math.log10(value)) - 2), unit = 10 ** digits;
  return say("runs_unit", { n: (Math.round(value / unit) * unit).toLocaleString("en-US") });
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b), middle = sorted.length >> 1;
  if (!sorted.length) return null;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

// "~1.02× (0.98× – 1.05×), 20 rounds in turns": all that is known of a speedup.
function speedupWithInterval(cell) {
  const interval = cell.speedup_low === undefined ? "" : ` (${times(cell.speedup_low)} – ${times(cell.speedup_high)})`;
  return [speedupText(cell) + interval, cell.rounds ? say("in_turns", { n: cell.rounds }) : null, cell.unresolved ? say("unresolved") : null].filter(Boolean).join(", ");
}

// The sentence on the machine's noise floor.
function floorText(floor) {
  if (!floor) return say("floor_unknown");
  const share = (value) => percent(value, value < 0.1 ? 1 : 0);
  return say("floor_value", { compilers: (floor.compilers ?? []).join(", "), pairs: floor.pairs, median: share(floor.median), p95: share(floor.p95), apart: share(floor.sequential_p95) });
}

const day = (iso) => iso.slice(0, 16).replace("T", " ");
const MARKS = { ok: "✓", unsupported: "∅", wrong: "≠", unstable: "~", error: "!", crashed: "✕", timeout: "⏱", out_of_memory: "▣" };

function verdictText(cell) {
  const stage = cell.stage ? ` (${say("stage_" + cell.stage)})` : "";
  return `${MARKS[cell.verdict] ?? "?"} ${say(cell.verdict)}${cell.verdict === "ok" ? "" : stage}`;
}

// A table of text: rows of cells, each a string, a node, or null for "no value".
function plainTable(caption, head, rows, options = {}) {
  const cellOf = (value, index) => {
    const left = options.left?.includes(index), wide = options.wide?.includes(index);
    const content = value ?? h("span", { class: "faint" }, "–");
    return index === 0 ? h("th", { scope: "row", class: "name" }, content)
      : h("td", { class: wide ? "wide" : left ? "left" : null }, content);
  };
  const headCell = ([text, hint], index) => h("th", {
    scope: "col", title: hint, class: options.left?.includes(index) || options.wide?.includes(index) ? "left" : null,
  }, text);
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    h("table", {}, h("caption", {}, caption),
      h("thead", {}, h("tr", {}, head.map((item, index) => headCell(Array.isArray(item) ? item : [item], index)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map(cellOf))))));
}

function swatch(column) {
  return h("span", { class: "swatch", style: `background:${styleOf(column).color}` });
}

// The title, what it is about, and a chart that follows them stay on one sheet of paper.
function section(id, title, about, ...content) {
  const first = content[0]?.tagName === "FIGURE" ? content.shift() : null;
  return h("section", { id, "aria-labelledby": id + "-title" },
    h("div", { class: "lead" }, h("h2", { id: id + "-title" }, title), about ? h("p", { class: "about" }, about) : null, first), ...content);
}

function facts(pairs) {
  return h("dl", { class: "facts" },
    pairs.filter(([, value]) => value).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}
