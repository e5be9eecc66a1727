// The sections of the whole: summary, distributions, scores, table, roofline, compile time and memory.
"use strict";

const SECTIONS = ["summary", "speedup", "scores", "table", "roofline", "compile", "memory"];

function columnHead(column) {
  const name = group().columns[column];
  const mark = group().baseline_columns.includes(column) ? h("span", { class: "faint" }, ` (${say("baseline")})`) : null;
  return h("span", {}, swatch(name), name, mark);
}

function summarySection() {
  const found = group(), settings = found.settings, machine = found.environment;
  const results = found.rows.flatMap((row) => row.cells).filter(Boolean);
  const ok = results.filter((cell) => cell.verdict === "ok").length;
  const figure = (value, name) => h("div", {}, h("b", {}, value), h("span", {}, name));
  const [first, last] = found.started.map(day);
  const machineText = [machine.cpu_model, machine.cpu_count && say("processors", { n: machine.cpu_count }),
    machine.memory_bytes && say("memory_of_machine", { size: size(machine.memory_bytes) }), machine.os, settings.environment].filter(Boolean).join(", ");
  return h("section", { id: "summary", "aria-labelledby": "summary-title" },
    h("h1", { id: "summary-title" }, say("title")),
    h("div", { class: "figures" }, figure(String(found.rows.length), say("graphs")), figure(String(found.columns.length), say("compilers")),
      figure(`${ok} / ${results.length}`, say("results_ok")), figure(String(settings.threads), say("threads"))),
    facts([
      [say("machine"), machineText], [say("date"), first === last ? `${first} UTC` : `${first} – ${last} UTC`],
      [say("noise"), found.noise && h("span", { title: say("noise_hint") }, say("noise_value", { median: percent(found.noise[0], 1), max: percent(found.noise[1], 1) }))],
      [say("floor"), h("span", { id: "floor", title: say("floor_hint") }, floorText(found.floor))],
      [say("settings_group"), [settings.device, settings.precision, `${say("passes")}: ${settings.passes}`, `${say("seed")}: ${settings.seed}`].join(", ")],
    ]),
    scoreTable());
}

function verdictBadges(counts) {
  return h("span", {}, Object.entries(counts).sort(([a], [b]) => (b === "ok") - (a === "ok")).map(([name, count]) =>
    h("span", { class: "badge" }, `${MARKS[name] ?? "?"} ${count} ${say(name)}`)));
}

function scoreTable() {
  const found = group(), at = (score, values, t) => (score ? values[OVERVIEW.levels.indexOf(t)].toFixed(3) : null);
  const rows = found.columns.map((_, column) => {
    const score = found.scores[column];
    return [columnHead(column), score && score.speedup !== null ? times(score.speedup) : null, score ? at(score, score.S, 0) : null,
      score ? at(score, score.ES, 3) : null, score ? percent(score.correct, 1) : null, verdictBadges(found.verdicts[column]),
      score ? String(score.graphs) : null, score ? String(score.left_out) : null, found.versions[column] || null];
  });
  const head = [say("compiler"), [say("geomean"), say("geomean_hint", { t: OVERVIEW.correct_at })], say("score_zero"), say("score_three"),
    say("correct_share"), say("verdicts"), say("of_graphs"), [say("left_out"), say("left_out_hint")], say("versions")];
  return plainTable(say("baseline_is", { name: OVERVIEW.baseline }), head, rows, { left: [5], wide: [8] });
}

function speedupSection() {
  const lines = speedupLines(), title = say("speedup_distribution");
  if (!lines.length) return section("speedup", title, say("no_speedups"));
  return section("speedup", title, say("speedup_text", { name: OVERVIEW.baseline }),
    chart("speedup-chart", title, linesHeight(lines.length), () => strips(speedupLines(), say("speedup_axis", { name: brief(OVERVIEW.baseline) }), "×", true)));
}

function scoresSection() {
  if (!group().scores.some(Boolean)) return null;
  return section("scores", say("scores"), say("scores_text"), chart("scores-chart", say("scores"), 460, scoreFigure));
}

function tableSection() {
  return section("table", say("table"), say("table_hint"), tableControls(), h("div", { id: "heat" }));
}

function rooflineSection() {
  if (!FIGURES[state.group]?.roofline) return null;
  return section("roofline", say("roofline"), say("roofline_text"), chart("roofline-chart", say("roofline"), 560, () => givenFigure(FIGURES[state.group].roofline)));
}

function compileSection() {
  const found = group(), warm = found.rows.some((row) => row.cells.some((cell) => cell?.warm_compile !== undefined));
  const cells = (column, wanted) => cellsOf(column, wanted).map(({ cell }) => cell);
  if (!found.columns.some((_, column) => cells(column, (cell) => cell.compile !== undefined).length)) return null;
  const rows = found.columns.map((_, column) => {
    const timed = cells(column, (cell) => cell.compile !== undefined), warmed = cells(column, (cell) => cell.warm_compile !== undefined);
    const compared = found.baseline_columns.includes(column) ? [] : cells(column, (cell) => cell.speedup !== undefined && cell.compile !== undefined);
    const earned = compared.filter((cell) => cell.payback !== undefined), warmEarned = compared.filter((cell) => cell.warm_payback !== undefined);
    const middle = (list, of, format) => (list.length ? format(median(list.map(of))) : null);
    return [columnHead(column), middle(timed, (cell) => cell.compile, time), ...(warm ? [middle(warmed, (cell) => cell.warm_compile, time)] : []),
      compared.length ? `${earned.length} / ${compared.length}` : null, middle(earned, (cell) => cell.payback, runs),
      ...(warm ? [middle(warmEarned, (cell) => cell.warm_payback, runs)] : [])];
  });
  const head = [say("compiler"), [say("compile_cold"), say("compile_cold_hint")], ...(warm ? [[say("compile_warm"), say("compile_warm_hint")]] : []),
    say("earned_back"), [say("payback"), say("payback_hint")], ...(warm ? [say("payback_warm")] : [])];
  const points = found.rows.some((row) => row.cells.some((cell) => cell?.payback !== undefined));
  return section("compile", say("compile"), say("compile_text", { name: OVERVIEW.baseline }),
    points ? chart("compile-chart", say("compile"), 460, paybackFigure) : null, plainTable(say("compile_cold_hint"), head, rows));
}

const MEMORY_PARTS = ["own", "baseline", "load_peak", "compile_peak", "run_peak", "steady", "weights", "inputs", "outputs"];

function memorySection() {
  const lines = memoryLines(), found = group();
  if (!lines.length) return null;
  const middle = (column, part) => median(cellsOf(column, (cell) => cell.memory?.[part]).map(({ cell }) => cell.memory[part]));
  const parts = MEMORY_PARTS.filter((part) => found.columns.some((_, column) => middle(column, part) !== null));
  const mib = (value) => (value === null ? null : (value / MIB).toFixed(1));
  const rows = found.columns.map((_, column) => [columnHead(column), ...parts.map((part) => mib(middle(column, part)))]);
  return section("memory", say("memory"), say("memory_text"),
    chart("memory-chart", say("memory"), linesHeight(lines.length), () => strips(memoryLines(), say("memory_axis"), "", false)),
    plainTable(say("memory_hint"), [say("compiler"), ...parts.map((part) => say("memory_" + part))], rows));
}

function drawOverview() {
  const place = document.getElementById("overview");
  place.replaceChildren(...[summarySection(), speedupSection(), scoresSection(), tableSection(), rooflineSection(), compileSection(), memorySection()].filter(Boolean));
  drawTable();
}

function drawContents() {
  const there = SECTIONS.filter((name) => document.querySelector(`#overview > #${name}`));
  const titles = { table: "table", speedup: "speedup", scores: "scores", compile: "compile", memory: "memory", roofline: "roofline", summary: "summary" };
  document.getElementById("contents").replaceChildren(...there.map((name) => h("a", { href: "#" + name }, say(titles[name]))));
}
