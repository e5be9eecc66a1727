// Puts the page together: address, language, colours, settings group, print.
"use strict";

function drawPage() {
  const found = addressed(), graphShown = found !== null;
  if (found) state.group = found.index;
  document.documentElement.dataset.theme = state.dark ? "dark" : "light";
  document.documentElement.lang = { en: "en", zh: "zh-Hans" }[state.language];
  for (const element of document.querySelectorAll("[data-text]")) element.textContent = say(element.dataset.text);
  for (const element of document.querySelectorAll("[data-label]")) element.setAttribute("aria-label", say(element.dataset.label));
  document.getElementById("theme").textContent = say(state.dark ? "light" : "dark");
  const footer = document.getElementById("generated");
  footer.textContent = say("generated", { version: footer.dataset.version });
  drawn.clear();
  document.title = `${say("title")} · GraphNet`;
  drawChooser();
  drawOverview();
  drawContents();
  document.getElementById("overview").hidden = graphShown;
  document.getElementById("graph-page").hidden = !graphShown;
  if (graphShown) { drawn.clear(); drawGraphPage(found); }
  drawCharts();
}

function drawChooser() {
  const many = OVERVIEW.groups.length > 1, choose = document.getElementById("group");
  document.getElementById("chooser").hidden = !many;
  document.getElementById("groups-note").textContent = say("groups_note", { n: OVERVIEW.groups.length });
  choose.replaceChildren(...OVERVIEW.groups.map((item, index) => h("option", { value: index, selected: index === state.group }, item.label)));
}

function remember(name, value) {
  try { localStorage.setItem("graphnet-" + name, value); } catch { /* a page may be opened where nothing can be kept */ }
}

function recall(name) {
  try { return localStorage.getItem("graphnet-" + name); } catch { return null; }
}

let shownAddress = null;

// A link within the overview only scrolls; to or from a graph's page everything is drawn, and the reader starts on top.
function goTo() {
  const wasGraph = shownAddress?.startsWith("#graph/"), isGraph = location.hash.startsWith("#graph/");
  shownAddress = location.hash;
  if (!wasGraph && !isGraph) return;
  hideTip();
  drawPage();
  const place = document.getElementById(isGraph ? "graph-page" : "overview");
  place.focus({ preventScroll: true });
  const target = isGraph ? null : document.getElementById(location.hash.slice(1));
  if (target) target.scrollIntoView(); else scrollTo(0, 0);
}

let darkOnScreen = false;

function paper(printing) {
  if (printing) darkOnScreen = state.dark;
  state.dark = printing ? false : darkOnScreen;
  document.documentElement.dataset.theme = state.dark ? "dark" : "light";
  drawCharts(true);
}

document.getElementById("language").addEventListener("click", () => {
  state.language = state.language === "en" ? "zh" : "en";
  drawPage();
});
document.getElementById("theme").addEventListener("click", () => {
  state.dark = !state.dark;
  remember("dark", state.dark ? "yes" : "no");
  drawPage();
});
document.getElementById("group").addEventListener("change", (event) => {
  state.group = Number(event.target.value);
  Object.assign(state.table, { subset: "", tier: "", verdict: "", name: "", sort: -1, ascending: true, chosen: false });
  if (location.hash.startsWith("#graph/")) location.hash = "#summary"; else drawPage();
});
matchMedia("print").addEventListener("change", (event) => paper(event.matches));
matchMedia("(max-width: 640px)").addEventListener("change", () => drawCharts());
const system = matchMedia("(prefers-color-scheme: dark)");
system.addEventListener("change", (event) => {
  if (recall("dark") !== null) return;
  state.dark = event.matches;
  drawPage();
});
addEventListener("hashchange", goTo);
addEventListener("scroll", hideTip, { passive: true });

state.dark = recall("dark") === null ? system.matches : recall("dark") === "yes";
shownAddress = location.hash;
drawPage();
if (location.hash && !location.hash.startsWith("#graph/")) document.getElementById(location.hash.slice(1))?.scrollIntoView();
