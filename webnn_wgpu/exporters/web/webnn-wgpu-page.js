// The page of a folder: it runs the model on the sample, and shows the difference to what another device computed. Models whose
// inputs are a picture, sentences or tokens get a form of their own, from the module that model.json names.

import { load } from "./webnn-wgpu-player.js";

const FORMS = ["sentences", "picture", "tokens"];

/** Return an element with attributes and children. Texts are text, never markup. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

const id = (name) => document.getElementById(name);
const typed = (tensor) => `${tensor.dataType}[${tensor.shape.join(", ")}]`;
const megabytes = (bytes) => bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;

/** Return the largest difference of two arrays, and the 2-norm of their difference relative to that of the second. */
export function difference(found, wanted) {
  let largest = 0, squares = 0, whole = 0;
  for (let i = 0; i < wanted.length; i++) {
    const a = Number(found[i]), b = Number(wanted[i]);
    const same = a === b || (Number.isNaN(a) && Number.isNaN(b));
    const distance = same ? 0 : Math.abs(a - b);
    largest = distance > largest || Number.isNaN(distance) ? distance : largest;
    squares += distance * distance;
    whole += Number.isFinite(b) ? b * b : 0;
  }
  return { largest, relative: squares === 0 ? 0 : Math.sqrt(squares / (whole || Number.MIN_VALUE)) };
}

function table(titles, rows) {
  const cell = (name, value, i) => element(name, i ? { class: "number" } : {}, value);
  return element("table", {},
    element("thead", {}, element("tr", {}, ...titles.map((title, i) => cell("th", title, i)))),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((value, i) => cell("td", value, i))))));
}

async function runSample(model, target) {
  const { inputs, outputs } = await model.readSample();
  await model.run(inputs); // Drivers compile kernels at their first run.
  const start = performance.now();
  const results = await model.run(inputs);
  const milliseconds = performance.now() - start;
  let worst = 0;
  const rows = Object.keys(outputs).map((name) => {
    const { largest, relative } = difference(results[name], outputs[name]);
    worst = Math.max(worst, Number.isNaN(relative) ? Infinity : relative);
    const mark = element("span", { class: relative <= 1e-3 ? "good" : "bad" }, relative.toExponential(1));
    return [name, typed(model.outputs[name]), largest.toExponential(1), mark];
  });
  target.replaceChildren(
    table(["Output", "Type", "Largest difference", "Relative difference (2-norm)"], rows),
    element("p", { class: "note" }, `One run took ${milliseconds.toFixed(1)} ms, with transfers. Compared with ${model.sample.device}.`));
  document.documentElement.dataset.difference = String(worst);
}

async function main() {
  const bar = id("progress");
  const model = await load("./", { progress: (done, total) => (bar.value = done / total) });
  document.title = model.name;
  id("name").textContent = model.name;
  const { vendor, architecture, description } = model.device.adapterInfo;
  const json = model._json;
  const weights = json.constants.reduce((sum, { bytes }) => sum + bytes, 0);
  id("facts").textContent = `${[vendor, architecture, description].filter(Boolean).join(" ") || "WebGPU"} · `
    + `${json.dispatches.length} dispatches of ${json.kernels.length} kernels · ${megabytes(weights)} of weights`;
  bar.remove();
  const content = id("main");
  if (model.page) {
    const section = element("section");
    content.append(section);
    const form = FORMS.find((kind) => kind === model.page.kind) ?? FORMS[0];
    const { show } = await import(`./webnn-wgpu-${form}.js`);
    await show(model, section);
  }
  const ends = (all) => Object.entries(all).map(([name, tensor]) => [name, typed(tensor)]);
  content.append(
    element("h2", {}, "Inputs and outputs"),
    table(["Name", "Type"], [...ends(model.inputs), ...ends(model.outputs).map(([name, type]) => [`→ ${name}`, type])]));
  if (model.sample) {
    const target = element("div");
    content.append(element("h2", {}, "Check"), target);
    await runSample(model, target);
  }
  document.documentElement.dataset.state = "done";
}

main().catch((error) => {
  id("facts").replaceChildren(element("span", { class: "error" }, error.message));
  id("progress")?.remove();
  document.documentElement.dataset.state = "failed";
  console.error(error);
});
