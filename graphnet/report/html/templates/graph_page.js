// The page of one graph: latency, where the time goes, errors, memory, settings.
"use strict";

const graphAddress = (row) => `#graph/${state.group}/${encodeURIComponent(row.slug)}`;

// The group and row that an address names; null for an address of another kind, undefined for one that is not there.
function addressed() {
  const parts = /^#graph\/(\d+)\/(.+)$/.exec(location.hash);
  if (!parts) return null;
  let slug;
  try { slug = decodeURIComponent(parts[2]); } catch { return undefined; }
  const index = Number(parts[1]), row = OVERVIEW.groups[index]?.rows.findIndex((item) => item.slug === slug) ?? -1;
  return row < 0 ? undefined : { index, row };
}

function drawGraphPage(found) {
  const place = document.getElementById("graph-page");
  if (!found) { place.replaceChildren(pager(-1), h("p", { class: "notice" }, say("not_found"))); return; }
  const row = group().rows[found.row], more = details().groups[state.group][found.row];
  place.replaceChildren(...[pager(found.row), h("h1", { class: "name" }, row.label), graphFacts(row), latencySection(row), timeSection(row, more),
    qualitySection(more), errorSection(more), graphMemory(row, more), settingsSection(row, more)].filter(Boolean));
  document.title = `${row.label} · GraphNet`;
}

function pager(index) {
  const rows = group().rows, link = (row, text) => h("a", { href: graphAddress(row) }, text);
  return h("nav", { class: "pager", "aria-label": say("contents") }, h("a", { href: "#table" }, "← " + say("back")),
    rows[index - 1] && index > 0 ? link(rows[index - 1], `${say("previous")}: ${rows[index - 1].label}`) : null,
    index >= 0 && rows[index + 1] ? link(rows[index + 1], `${say("next")}: ${rows[index + 1].label}`) : null);
}

function graphFacts(row) {
  return facts([
    [say("identifier"), row.graph_id], [say("subset"), row.subset], [say("tier"), row.tier || say("unknown")],
    [say("operators"), row.operators?.toLocaleString("en-US")], [say("parameters"), row.parameters !== undefined ? big(row.parameters) : null],
    [say("flops"), row.flops !== undefined ? big(row.flops) + "FLOP" : null], [say("bytes"), row.bytes !== undefined ? size(row.bytes) : null],
    [say("sizes"), row.sizes], [say("structure_hash"), row.structure_hash], [say("settings_group"), group().label],
  ]);
}

function latencySection(row) {
  const columns = group().columns.map((_, column) => column).filter((column) => row.cells[column]);
  const fractions = Object.fromEntries(["median", "fastest", "p90", "p99"].map((name) =>
    [name, longestFraction(columns.map((column) => row.cells[column][name]))]));
  const rows = columns.map((column) => {
    const cell = row.cells[column], timed = cell.median !== undefined;
    const ms = (name) => (timed ? milliseconds(cell[name], fractions[name]) : null);
    const baseline = group().baseline_columns.includes(column);
    return [columnHead(column), verdictText(cell), ms("median"), timed ? `${three(cell.low * 1e3)} – ${three(cell.high * 1e3)}` : null, ms("fastest"), ms("p90"), ms("p99"),
      timed ? String(cell.runs) : null, cell.speedup === undefined ? null : speedupText(cell),
      cell.speedup_low === undefined ? null : `${times(cell.speedup_low)} – ${times(cell.speedup_high)}`, cell.compile === undefined ? null : time(cell.compile),
      cell.warm_compile === undefined ? null : time(cell.warm_compile),
      cell.payback !== undefined ? runs(cell.payback) : !baseline && cell.speedup !== undefined && cell.compile !== undefined ? say("never") : null];
  });
  const head = [say("compiler"), say("verdict"), say("median") + " (ms)", say("interval"), say("minimum"), "p90", "p99", say("runs"), [say("speedup"), `${UNRESOLVED} ${say("legend_unresolved")}`], say("speedup_interval"), say("compile_cold"), say("compile_warm"), say("payback")];
  const keep = head.map((_, index) => index < 2 || rows.some((line) => line[index] !== null)); // columns that nothing was measured for
  const kept = (line) => line.filter((_, index) => keep[index]);
  const drawable = columns.filter((column) => row.cells[column].verdict === "ok").length;
  return section("graph-latency", say("latency"), say("latency_text"),
    drawable ? chart("latency-chart", say("latency"), 70 + 34 * Math.max(2, drawable), () => latencyFigure(row)) : null,
    plainTable(say("milliseconds"), kept(head), rows.map(kept), { left: [1] }));
}

function timeSection(row, more) {
  const profiled = group().columns.map((_, column) => column).filter((column) => more[column]?.kernels);
  if (!profiled.length) return section("graph-time", say("time_by_operator"), say("no_kernels"));
  const lists = profiled.map((column) => {
    const detail = more[column], median_us = (row.cells[column].median ?? 0) * 1e6;
    const share = (value) => (median_us ? percent(value / median_us, 1) : null);
    const most = longestFraction([...detail.kernels.map((kernel) => kernel[3] / 1e6), (detail.more_microseconds ?? 0) / 1e6]);
    const rows = detail.kernels.map(([name, nodes, calls, microseconds]) => [name, nodes, String(calls), milliseconds(microseconds / 1e6, most), share(microseconds)]);
    if (detail.more_kernels) rows.push([say("more_kernels", { n: detail.more_kernels }), "", null, milliseconds(detail.more_microseconds / 1e6, most), share(detail.more_microseconds)]);
    const count = detail.kernels.length + (detail.more_kernels ?? 0);
    return h("details", {}, h("summary", {}, swatch(group().columns[column]), say("kernels_of", { name: group().columns[column], n: count })),
      plainTable(say("kernels"), [say("kernel"), say("nodes"), say("calls"), say("time") + " (ms)", say("share")], rows, { wide: [1] }));
  });
  return section("graph-time", say("time_by_operator"), say("time_text"),
    chart("operator-chart", say("time_by_operator"), 130 + 34 * profiled.length, () => operatorFigure(row, more)),
    h("h3", {}, say("kernels")), ...lists);
}

function errorSection(more) {
  const error = (value) => (value === null || value === undefined ? null : value === 0 ? "0" : value.toExponential(1));
  const rows = more.flatMap((detail, column) => (detail?.outputs ?? []).map(([name, dtype, level, absolute, relative]) =>
    [columnHead(column), h("span", { class: "name" }, name), dtype, level === null ? say("never") : String(level), error(absolute), error(relative)]));
  if (!rows.length) return null;
  return section("graph-errors", say("correctness"), null, plainTable(say("correctness"),
    [say("compiler"), say("output"), say("dtype"), say("level"), say("max_abs"), say("max_rel")], rows, { left: [1, 2] }));
}

const QUALITY_PARTS = ["saturation", "vector_share", "fma_share", "width_share", "spills", "library_share"];

function qualitySection(more) {
  const found = more.map((detail, column) => [column, detail?.quality]).filter(([, quality]) => quality);
  if (!found.length) return null;
  const shown = (name, value) => (value === undefined ? null : name === "spills" ? String(value) : percent(value));
  const rows = found.map(([column, quality]) => [columnHead(column), ...QUALITY_PARTS.map((name) => shown(name, quality[name]))]);
  return section("graph-quality", say("quality"), say("quality_text"),
    plainTable(say("quality"), [say("compiler"), ...QUALITY_PARTS.map((name) => say("quality_" + name))], rows));
}

function graphMemory(row, more) {
  const columns = group().columns.map((_, column) => column).filter((column) => row.cells[column]?.memory);
  if (!columns.length) return null;
  const parts = MEMORY_PARTS.filter((part) => columns.some((column) => row.cells[column].memory[part]));
  const own = (column) => Object.entries(more[column]?.allocator ?? {}).map(([name, bytes]) => `${name} ${size(bytes)}`).join(", ");
  const allocator = columns.some((column) => own(column));
  const rows = columns.map((column) => [columnHead(column), ...parts.map((part) => { const value = row.cells[column].memory[part]; return value ? (value / MIB).toFixed(1) : null; }), ...(allocator ? [own(column) || null] : [])]);
  return section("graph-memory", say("memory"), null, plainTable("MiB", [say("compiler"), ...parts.map((part) => say("memory_" + part)), ...(allocator ? [say("allocator")] : [])], rows));
}

function settingsSection(row, more) {
  const lists = group().columns.map((name, column) => {
    const cell = row.cells[column], detail = more[column];
    if (!cell || !detail) return null;
    const parts = (list) => (list ? `${say("lowering")} ${time(list[0])}, ${say("compilation")} ${time(list[1])}, ${say("first_run")} ${time(list[2])}` : null);
    const flagged = cell.notes || cell.message ? " •" : "";
    return h("details", {}, h("summary", {}, swatch(name), `${name} ${flagged}`), facts([
      [say("message"), cell.message], [say("notes"), cell.notes?.join("; ")], [say("compile_cold"), parts(detail.compile)], [say("compile_warm"), parts(detail.warm_compile)],
      [say("noise"), cell.noise === undefined ? null : percent(cell.noise, 1)], [say("date"), detail.started && day(detail.started) + " UTC"], [say("wall"), detail.wall ? time(detail.wall) : null],
      [say("versions"), group().versions[column]], ...Object.entries(details().settings[detail.settings] ?? {}), [say("job"), detail.job]]));
  }).filter(Boolean);
  const noted = group().columns.flatMap((name, column) => [...(row.cells[column]?.notes ?? []), row.cells[column]?.message].filter(Boolean).map((text) => [name, text]));
  const machine = Object.entries(group().environment).map(([name, value]) => [name, name === "memory_bytes" ? size(value) : String(value)]);
  return section("graph-settings", say("settings"), null, facts(noted), ...lists,
    h("details", {}, h("summary", {}, say("machine")), facts(machine)));
}
