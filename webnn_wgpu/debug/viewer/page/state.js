// The data of the page, what is shown of it, and small helpers. `#view=run&select=LABEL&color=time` in the address says
// where to begin, and follows along, so that a place can be linked to.

const DATA = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);

const state = {
  graph: 0,
  view: "run",
  tab: "details",
  color: "family",
  selected: -1,
  kernel: -1,
  search: "",
  theme: "",
  language: "wgsl",
};

const scene = () => DATA.graphs[state.graph];
const picture = () => scene()[state.view === "built" ? "built" : "run"];

function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "data") Object.assign(made.dataset, value);
    else made[name] = value;
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function bytes(count) {
  const units = ["B", "KiB", "MiB", "GiB"];
  let power = 0;
  while (count >= 1024 && power < units.length - 1) {
    count /= 1024;
    power += 1;
  }
  return `${count >= 100 || power === 0 ? Math.round(count) : count.toFixed(1)} ${units[power]}`;
}

function duration(microseconds) {
  return microseconds >= 1000 ? `${(microseconds / 1000).toFixed(2)} ms` : `${microseconds.toFixed(1)} µs`;
}

const figure = (number) =>
  number === 0
    ? "0"
    : Math.abs(number) < 1e-3 || Math.abs(number) >= 1e5
      ? number.toExponential(2)
      : number.toPrecision(4);

const colors = new Map();
function color(name) {
  if (!colors.has(name))
    colors.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
  return colors.get(name);
}

function mixed(from, to, share) {
  const parts = [from, to].map((text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16)));
  return parts[0].map((value, i) => Math.round(value + (parts[1][i] - value) * share));
}

// A place between 0 and 1 on the ramp from `--low` over `--middle` to `--high`, as [r, g, b].
function ramp(share) {
  return share < 0.5
    ? mixed(color("low"), color("middle"), share * 2)
    : mixed(color("middle"), color("high"), share * 2 - 1);
}

const isDarkTone = ([r, g, b]) => 0.299 * r + 0.587 * g + 0.114 * b < 140;

function kernelTime(indices) {
  const times = indices.map((i) => scene().kernels[i].us).filter((us) => us !== null);
  return times.length ? times.reduce((sum, us) => sum + us, 0) : null;
}

function setTheme(theme) {
  state.theme = theme;
  document.documentElement.dataset.theme = theme;
  colors.clear();
}

function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  state.graph = Math.min(DATA.graphs.length - 1, Math.max(0, Number(given.get("graph")) || 0));
  if (["built", "run", "memory"].includes(given.get("view"))) state.view = given.get("view");
  if (["details", "kernels", "passes", "placement"].includes(given.get("tab"))) state.tab = given.get("tab");
  if (["family", "time", "error"].includes(given.get("color"))) state.color = given.get("color");
  else if (scene().kernels.some((kernel) => kernel.us !== null)) state.color = "time";
  state.search = given.get("search") || "";
  setTheme(given.get("theme") || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
  state.language = given.get("language") || "wgsl";
  if (given.has("select"))
    state.selected = picture().boxes.findIndex((box) => [box.label, box.title].includes(given.get("select")));
  if (given.has("kernel")) state.kernel = scene().kernels.findIndex((kernel) => kernel.name === given.get("kernel"));
}

function writeAddress() {
  const said = new URLSearchParams({ view: state.view, color: state.color, tab: state.tab, theme: state.theme });
  if (state.graph) said.set("graph", state.graph);
  if (state.selected >= 0) said.set("select", picture().boxes[state.selected].label);
  if (state.kernel >= 0) said.set("kernel", scene().kernels[state.kernel].name);
  if (state.search) said.set("search", state.search);
  if (state.language !== "wgsl") said.set("language", state.language);
  history.replaceState(null, "", `#${said}`);
}
