// The panel beside the graph: the selected operator, its kernels with their sources, tables of kernels, passes, placement.

const heading = (text) => element("h3", { textContent: text });
const note = (text, kind = "muted") => element("p", { className: kind, textContent: text });

function facts(rows) {
  const list = element("dl");
  for (const [name, value] of rows) {
    if (value !== "" && value !== null && value !== undefined)
      list.append(element("dt", { textContent: name }), element("dd", {}, value));
  }
  return list;
}

function table(titles, rows) {
  const head = element(
    "tr",
    {},
    ...titles.map((title) => (typeof title === "string" ? element("th", { textContent: title }) : title)),
  );
  return element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows));
}

const cell = (content, className = "") => element("td", { className }, content);

function showPanel() {
  const panel = byId("panel");
  panel.replaceChildren(
    ...{ details: details, kernels: kernelTable, passes: passTable, placement: placementTable }[state.tab](),
  );
  panel.scrollTop = 0;
}

// The selected operator -------------------------------------------------------------------------------------------

function details() {
  if (state.kernel >= 0) return kernelCard(state.kernel, true);
  const shown = state.view === "memory" ? scene().run : picture();
  const box = shown.boxes[state.selected];
  if (!box)
    return [
      note(
        "Click a box for what it is, its kernels and their sources. Wheel: zoom. Drag: move. Arrow keys: along the lines. / searches, f shows all.",
      ),
      ...graphFacts(),
    ];
  if (box.kind !== "op")
    return [
      element("h2", { textContent: box.title }),
      facts([
        ["kind", box.kind],
        ["type", code(box.type)],
      ]),
      ...neighbors(shown),
    ];
  const parts = [element("h2", { textContent: box.title }), note(box.label)];
  const time = kernelTime(box.kernels);
  parts.push(
    facts([
      ["type", code(box.type)],
      ["time", time === null ? "" : duration(time)],
      ["error", box.error === null ? "" : figure(box.error)],
      ["from", box.places.join(", ")],
      ["computes", box.origins.length > 1 || box.origins[0] !== box.label ? origins(box) : ""],
    ]),
  );
  if (box.fate) parts.push(note(`No kernel: ${box.fate}.`, "warn"));
  if (box.members.length) {
    parts.push(
      heading("Fused operators"),
      table(
        ["operator", "label", "result"],
        box.members.map((row) => element("tr", {}, ...row.map((text) => cell(text)))),
      ),
    );
  }
  if (box.operands.length) {
    parts.push(
      heading("Operands"),
      table(
        ["name", "type", ""],
        box.operands.map(([name, type, kind]) =>
          element("tr", {}, cell(name), cell(code(type)), cell(kind)),
        ),
      ),
    );
  }
  const options = Object.entries(box.options);
  if (options.length) parts.push(heading("Options"), facts(options));
  parts.push(...neighbors(shown), ...memoryFacts(box));
  for (const index of box.kernels) parts.push(...kernelCard(index, false));
  return parts;
}

const code = (text) => element("code", { textContent: text });

function origins(box) {
  return element(
    "span",
    {},
    ...box.origins.map((label) =>
      element("a", { className: "link chip", textContent: label, onclick: () => goTo("built", label) }),
    ),
  );
}

function graphFacts() {
  const graph = scene();
  const memory = graph.memory;
  const count = (shown) => shown.boxes.filter((box) => box.kind === "op").length;
  return [
    heading(graph.name),
    facts([
      ["as built", `${count(graph.built)} operators`],
      ["as run", `${count(graph.run)} operators and groups`],
      ["kernels", `${graph.kernels.length}, of ${graph.sources.length} distinct sources`],
      [
        "slots",
        memory
          ? `${memory.slots.length}, ${bytes(memory.slots.reduce((sum, size) => sum + size, 0))} (${bytes(memory.unshared)} without sharing)`
          : "",
      ],
      ["constants", memory ? bytes(memory.constants) : ""],
      ["in all", memory ? bytes(memory.total) : ""],
      ["device", DATA.device],
      ["profile", DATA.profile],
      ["differences", DATA.diff],
    ]),
  ];
}

function neighbors(shown) {
  const near = prepare(shown).near[state.selected];
  const links = (indices) =>
    element(
      "span",
      {},
      ...[...new Set(indices)].map((index) =>
        element("a", {
          className: "link chip",
          textContent: shown.boxes[index].kind === "op" ? shown.boxes[index].label : shown.boxes[index].title,
          onclick: () => {
            select(index);
            lookAt(index);
            refresh();
          },
        }),
      ),
    );
  return [
    heading("Around it"),
    facts([
      ["reads", near.above.length ? links(near.above) : ""],
      ["read by", near.below.length ? links(near.below) : ""],
    ]),
  ];
}

function memoryFacts(box) {
  const memory = scene().memory;
  const rows = memory ? memory.values.filter(([label]) => label === box.label) : [];
  if (state.view === "built" || !rows.length) return [];
  return [
    heading("In memory"),
    table(
      ["slot", "at", "bytes", "dispatches"],
      rows.map(([, , slot, offset, size, first, last]) =>
        element("tr", {}, cell(String(slot)), cell(bytes(offset)), cell(bytes(size)), cell(`${first} to ${last}`)),
      ),
    ),
  ];
}

// Kernels ---------------------------------------------------------------------------------------------------------

function kernelCard(index, alone) {
  const kernel = scene().kernels[index];
  const parts = [...(alone ? [] : [heading("Kernel")]), element("h2", { textContent: kernel.name })];
  parts.push(
    facts([
      ["shader", code(kernel.shader)],
      ["template", kernel.template ? code(`shaders/${kernel.template}`) : "the program's own"],
      ["why", kernel.reason],
      ["time", kernel.us === null ? "" : duration(kernel.us)],
      ...Object.entries(kernel.rates),
      ["workgroups", `${kernel.grid.join(" × ")}${kernel.workgroup ? ` of ${kernel.workgroup.join(" × ")}` : ""}`],
      [
        "uniforms",
        Object.entries(kernel.constants)
          .map(([name, value]) => `${name}=${value}`)
          .join(", "),
      ],
      [
        "computes",
        element(
          "span",
          {},
          ...kernel.labels.map((label) =>
            element("a", { className: "link chip", textContent: label, onclick: () => goTo("built", label) }),
          ),
        ),
      ],
    ]),
  );
  parts.push(
    table(
      ["@", "binding", "element", "bound to", "bytes"],
      kernel.bindings.map(([name, access, kind, bound, size], i) =>
        element(
          "tr",
          {},
          cell(String(i)),
          cell(`${name} (${access})`),
          cell(kind),
          cell(bound),
          cell(bytes(size), "number"),
        ),
      ),
    ),
  );
  if (kernel.overridden) parts.push(note("A source of the program's own stands in for it.", "warn"));
  const wgsl = source(scene().sources[kernel.source]);
  const texts = scene().translations[kernel.source];
  parts.push(...languages(["wgsl", ...Object.keys(texts)]));
  if (state.language in texts) {
    wgsl.classList.add("below");
    parts.push(translation(texts[state.language], wgsl));
  }
  parts.push(wgsl);
  return parts;
}

// The language that kernels are shown in beside WGSL stays from kernel to kernel.
function languages(names) {
  if (names.length < 2) return [];
  if (!names.includes(state.language)) state.language = "wgsl";
  const buttons = names.map((name) =>
    element("button", {
      ariaSelected: String(name === state.language),
      textContent: name,
      onclick: () => {
        state.language = name;
        showPanel();
        writeAddress();
      },
    }),
  );
  return [element("nav", {}, ...buttons)];
}

const WGSL_LINES = /lines (\d+)-(\d+) of the WGSL/;

// A translated kernel. A line that names lines of the WGSL marks them in its listing when it is clicked.
function translation(text, wgsl) {
  const listing = element("pre", { className: "wgsl above" });
  text.split("\n").forEach((line, number) => {
    const lines = line.match(WGSL_LINES);
    const row = element("span", { className: "row", data: { line: number + 1 } });
    row.append(
      lines
        ? element("a", { className: "link", textContent: line, onclick: () => mark(wgsl, +lines[1], +lines[2]) })
        : line || " ",
    );
    listing.append(row);
  });
  return listing;
}

function mark(listing, first, last) {
  const rows = [...listing.querySelectorAll(".row")];
  rows.forEach((row, i) => row.classList.toggle("marked", i + 1 >= first && i + 1 <= last));
  if (rows[first - 1]) listing.scrollTop = rows[first - 1].offsetTop - rows[0].offsetTop;
}

const WGSL =
  /(\/\/[^\n]*)|(@\w+)|\b(fn|let|var|const|override|struct|if|else|for|while|loop|return|break|continue|switch|case|default|enable|alias|true|false|discard|continuing)\b|\b(u32|i32|f32|f16|bool|i64|u64|vec[234](?:<\w+>|[fiuh])?|mat\dx\d(?:<\w+>|[fh])?|array|atomic|ptr|texture_\w+|storage|uniform|workgroup|private|function|read_write|read|write)\b|(\b(?:0x[\da-fA-F]+|\d[\d.]*(?:e[+-]?\d+)?)[iufh]?\b)|(\b\w+(?=\())/g;
const WGSL_KINDS = ["comment", "attribute", "keyword", "type", "literal", "call"];

function source(text) {
  const listing = element("pre", { className: "wgsl" });
  text.split("\n").forEach((line, number) => {
    const row = element("span", { className: "row", data: { line: number + 1 } });
    let at = 0;
    for (const found of line.matchAll(WGSL)) {
      row.append(line.slice(at, found.index));
      const kind = WGSL_KINDS[found.slice(1).findIndex((group) => group !== undefined)];
      row.append(element("span", { className: kind, textContent: found[0] }));
      at = found.index + found[0].length;
    }
    row.append(line.slice(at) || (line ? "" : " "));
    listing.append(row);
  });
  return listing;
}

let kernelOrder = "order";

function kernelTable() {
  const kernels = scene().kernels.map((kernel, index) => ({ kernel, index }));
  const timed = kernels.some(({ kernel }) => kernel.us !== null);
  if (kernelOrder === "time") kernels.sort((a, b) => (b.kernel.us || 0) - (a.kernel.us || 0));
  const most = Math.max(...kernels.map(({ kernel }) => kernel.us || 0));
  const sorted = (title, order, className = "") =>
    element("th", {
      textContent: title,
      className,
      data: { sort: order },
      onclick: () => {
        kernelOrder = order;
        showPanel();
      },
    });
  const rows = kernels.map(({ kernel, index }) => {
    const row = element(
      "tr",
      {
        className: `link${index === state.kernel ? " here" : ""}`,
        onclick: () => {
          state.kernel = index;
          goToKernel(index);
        },
      },
      cell(String(index), "number"),
      cell(
        element(
          "span",
          {},
          kernel.name,
          element("br"),
          element("small", { className: "muted", textContent: kernel.shader }),
        ),
      ),
    );
    if (timed) {
      const time = cell(kernel.us === null ? "" : duration(kernel.us), "number bar");
      time.style.setProperty("--share", `${most ? ((kernel.us || 0) / most) * 100 : 0}%`);
      row.append(time);
    }
    return row;
  });
  return [
    note(DATA.profile),
    table(
      [sorted("#", "order", "number"), "kernel and shader", ...(timed ? [sorted("time ▾", "time", "number")] : [])],
      rows,
    ),
  ];
}

// Passes and placement --------------------------------------------------------------------------------------------

function passTable() {
  return [
    table(
      ["pass", "nodes", "why"],
      scene().passes.map(([name, before, after, why, places]) =>
        element(
          "tr",
          {},
          cell(code(name)),
          cell(before === after ? String(before) : `${before} → ${after}`, "number"),
          cell(places.length ? `${why}; from ${places.join(", ")}` : why),
        ),
      ),
    ),
  ];
}

function placementTable() {
  if (!DATA.placement.length)
    return [note("All operators of a graph run on the device. Models say here where each of their nodes runs.")];
  const rows = DATA.placement.map(([op, name, where, why]) =>
    element(
      "tr",
      {},
      cell(op),
      cell(name),
      cell(where, where === "host" || where === "unsupported" ? "warn" : ""),
      cell(why),
    ),
  );
  return [table(["operator", "node", "where", "why"], rows)];
}
