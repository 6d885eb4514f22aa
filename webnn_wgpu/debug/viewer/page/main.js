// What happens when: drawing, searching, selecting, moving about.

const views = [...document.querySelectorAll("#views button")];
const tabs = [...document.querySelectorAll("#tabs button")];
let asked = false;

function refresh() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    redraw();
  });
}

function redraw() {
  byId("overview").hidden = state.view === "memory";
  if (state.view === "memory") drawMemory();
  else drawGraph();
  writeAddress();
}

function showAll() {
  const graph = scene();
  byId("title").textContent = DATA.title;
  byId("summary").textContent = DATA.profile || graph.summary;
  byId("summary").title = graph.summary;
  views.forEach((button) => button.setAttribute("aria-selected", button.dataset.view === state.view));
  tabs.forEach((button) => button.setAttribute("aria-selected", button.dataset.tab === state.tab));
  byId("color").value = state.color;
  showLegend();
  showPanel();
}

function showLegend() {
  const legend = byId("legend");
  if (state.view === "memory") {
    legend.replaceChildren();
    return;
  }
  if (state.color === "family") {
    const present = [...new Set(picture().boxes.map(familyOf))].sort();
    legend.replaceChildren(
      ...present.map((name) => element("span", {}, element("i", { style: `background: var(--${name})` }), name)),
    );
    return;
  }
  const most = endOfScale();
  const known = picture().boxes.some((box) => measure(box) !== null);
  const unit = state.color === "time" ? duration(most) : `${most === 1 ? "" : `${figure(most)} of `}what is tolerated`;
  const absent = state.color === "time" ? "no profile was given" : "no differences were given";
  legend.replaceChildren(...(known ? ["0", element("i", { className: "ramp" }), unit] : [absent]));
}

function select(index) {
  state.selected = index;
  state.kernel = -1;
  state.tab = "details";
  showAll();
  refresh();
}

function setView(view) {
  const label = picture().boxes[state.selected]?.origins?.[0] ?? picture().boxes[state.selected]?.title;
  state.view = view;
  state.selected = find(label);
  begin();
  if (state.selected >= 0) lookAt(state.selected);
  showAll();
  refresh();
}

const find = (label) =>
  label === undefined
    ? -1
    : picture().boxes.findIndex(
        (box) => box.label === label || box.title === label || (box.origins || []).includes(label),
      );

function goTo(view, label) {
  state.view = view;
  state.kernel = -1;
  state.selected = find(label);
  if (state.selected >= 0) lookAt(state.selected);
  showAll();
  refresh();
}

function goToKernel(index) {
  const at = picture().boxes.findIndex((box) => (box.kernels || []).includes(index));
  state.selected = at;
  state.kernel = index;
  state.tab = "details";
  if (at >= 0) lookAt(at);
  showAll();
  refresh();
}

// Searching -------------------------------------------------------------------------------------------------------

let hits = [];
let hit = -1;

function search(text) {
  state.search = text;
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = state.view === "memory" ? scene().run : picture();
  hits = !words.length
    ? []
    : shown.boxes.flatMap((box, index) => {
        const shaders = (box.kernels || []).map(
          (kernel) => `${scene().kernels[kernel].name} ${scene().kernels[kernel].shader}`,
        );
        const known = [box.title, box.label, box.type, box.family, ...(box.origins || []), ...shaders]
          .join(" ")
          .toLowerCase();
        return words.every((word) => known.includes(word)) ? [index] : [];
      });
  hit = -1;
  byId("found").hidden = !words.length;
  byId("found").dataset.count = hits.length;
  const rows = hits
    .slice(0, 200)
    .map((index, row) =>
      element(
        "li",
        { onclick: () => take(row) },
        element("b", { textContent: shown.boxes[index].title }),
        element("small", { textContent: `${shown.boxes[index].label}  ${shown.boxes[index].type}` }),
      ),
    );
  byId("found").replaceChildren(
    ...(rows.length ? rows : [element("li", { className: "muted", textContent: "nothing found" })]),
  );
}

function take(row) {
  if (!hits.length) return;
  hit = (row + hits.length) % hits.length;
  select(hits[hit]);
  lookAt(hits[hit]);
  [...byId("found").children].forEach((item, i) => item.classList.toggle("here", i === hit));
  byId("found").children[Math.min(hit, 199)]?.scrollIntoView({ block: "nearest" });
}

byId("search").addEventListener("input", (event) => search(event.target.value));
byId("search").addEventListener("keydown", (event) => {
  if (event.key === "Enter") take(hit + (event.shiftKey ? -1 : 1));
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    take(hit + (event.key === "ArrowDown" ? 1 : -1));
    event.preventDefault();
  }
  if (event.key === "Escape") {
    byId("found").hidden = true;
    canvas.focus();
  }
  event.stopPropagation();
});

// Mouse and keys --------------------------------------------------------------------------------------------------

let drag = null;

canvas.addEventListener("pointerdown", (event) => {
  drag = { x: event.clientX, y: event.clientY, moved: false };
  canvas.setPointerCapture(event.pointerId);
  byId("found").hidden = true;
});
canvas.addEventListener("pointermove", (event) => {
  if (drag && state.view !== "memory") {
    if (Math.hypot(event.clientX - drag.x, event.clientY - drag.y) > 3) drag.moved = true;
    if (!drag.moved) return;
    camera.x -= event.movementX / camera.scale;
    camera.y -= event.movementY / camera.scale;
    refresh();
    return;
  }
  showTip(event);
});
canvas.addEventListener("pointerup", (event) => {
  if (drag && !drag.moved) {
    if (state.view === "memory") {
      const value = valueAt(event);
      select(value ? scene().run.boxes.findIndex((box) => box.label === value.label) : -1);
    } else select(boxAt(event));
  }
  drag = null;
});
canvas.addEventListener("dblclick", (event) => {
  const index = boxAt(event);
  if (index >= 0) {
    camera.scale = 1.2;
    lookAt(index);
    refresh();
  }
});
canvas.addEventListener("pointerleave", () => {
  byId("tip").hidden = true;
});
canvas.addEventListener(
  "wheel",
  (event) => {
    event.preventDefault();
    if (state.view === "memory") return;
    const bounds = canvas.getBoundingClientRect();
    const [dx, dy] = [event.clientX - bounds.left - bounds.width / 2, event.clientY - bounds.top - bounds.height / 2];
    const scale = Math.min(
      3,
      Math.max(0.01, camera.scale * Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015))),
    );
    camera.x += dx / camera.scale - dx / scale;
    camera.y += dy / camera.scale - dy / scale;
    camera.scale = scale;
    refresh();
  },
  { passive: false },
);

function showTip(event) {
  let text = "";
  if (state.view === "memory") text = valueAt(event)?.text ?? "";
  else {
    const box = picture().boxes[boxAt(event)];
    const time = box?.kernels ? kernelTime(box.kernels) : null;
    if (box)
      text = [box.title, box.label, box.type, time === null ? "" : duration(time), box.fate || ""]
        .filter(Boolean)
        .join("\n");
  }
  const tip = byId("tip");
  tip.hidden = !text;
  tip.textContent = text;
  const bounds = byId("stage").getBoundingClientRect();
  tip.style.left = `${Math.min(event.clientX - bounds.left + 14, bounds.width - 300)}px`;
  tip.style.top = `${Math.min(event.clientY - bounds.top + 14, bounds.height - 90)}px`;
}

document.addEventListener("keydown", (event) => {
  if (["INPUT", "SELECT"].includes(event.target.tagName) || event.ctrlKey || event.metaKey) return;
  const near = state.view !== "memory" && state.selected >= 0 ? prepare(picture()).near[state.selected] : null;
  const next = near && { ArrowUp: near.above[0], ArrowDown: near.below[0] }[event.key];
  if (next !== undefined && next !== null) {
    select(next);
    lookAt(next);
  } else if (event.key === "/") byId("search").focus();
  else if (event.key === "f") {
    fit();
    refresh();
  } else if (event.key === "t") byId("theme").click();
  else if (event.key === "Escape") select(-1);
  else return;
  event.preventDefault();
});

overview.addEventListener("pointerdown", (event) => {
  overview.setPointerCapture(event.pointerId);
  jump(event);
});
overview.addEventListener("pointermove", (event) => {
  if (event.buttons) jump(event);
});
function jump(event) {
  const bounds = overview.getBoundingClientRect();
  camera.x = (event.clientX - bounds.left - 6) / small.fx;
  camera.y = (event.clientY - bounds.top - 6) / small.fy;
  refresh();
}

byId("divider").addEventListener("pointerdown", (event) => {
  const divider = event.target;
  divider.setPointerCapture(event.pointerId);
  divider.onpointermove = (move) => {
    document.querySelector("aside").style.width = `${Math.max(240, innerWidth - move.clientX)}px`;
    refresh();
  };
  divider.onpointerup = () => {
    divider.onpointermove = null;
  };
});

views.forEach((button) => button.addEventListener("click", () => setView(button.dataset.view)));
tabs.forEach((button) =>
  button.addEventListener("click", () => {
    state.tab = button.dataset.tab;
    state.kernel = -1;
    showAll();
    refresh();
  }),
);
byId("color").addEventListener("change", (event) => {
  state.color = event.target.value;
  showLegend();
  refresh();
});
byId("theme").addEventListener("click", () => {
  setTheme(state.theme === "dark" ? "light" : "dark");
  refresh();
});
byId("fit").addEventListener("click", () => {
  fit();
  refresh();
});
byId("graph").addEventListener("change", (event) => {
  state.graph = Number(event.target.value);
  state.selected = state.kernel = -1;
  begin();
  showAll();
  refresh();
});
new ResizeObserver(refresh).observe(canvas);

// The beginning: drawn at once, so that what `data-opened` says is when the graph was first there to be seen.
readAddress();
byId("graph").append(...DATA.graphs.map((graph, i) => element("option", { value: i, textContent: graph.name })));
byId("graph").value = state.graph;
byId("graph").hidden = DATA.graphs.length < 2;
begin();
if (state.selected >= 0) lookAt(state.selected);
if (state.kernel >= 0) goToKernel(state.kernel);
byId("search").value = state.search;
if (state.search) search(state.search);
showAll();
redraw();
document.documentElement.dataset.opened = Math.round(performance.now());
