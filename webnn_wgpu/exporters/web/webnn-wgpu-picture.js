// A form that classifies a picture which is dropped on it.

import { element } from "./webnn-wgpu-page.js";

/** The part of the shorter side in a center crop. */
const CROP = 224 / 256;
/** The gray of borders. */
const GRAY = "rgb(114 114 114)";
const SHOWN = 5;

/** Return the pixels of a picture in the size of the model's input, as RGBA. */
function resized(bitmap, { width, height, fit }) {
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.imageSmoothingQuality = "high";
  context.fillStyle = GRAY;
  context.fillRect(0, 0, width, height);
  const [x, y] = [width / bitmap.width, height / bitmap.height];
  const scale = { crop: Math.max(x, y) / CROP, pad: Math.min(x, y) }[fit];
  const [w, h] = fit === "stretch" ? [width, height] : [bitmap.width * scale, bitmap.height * scale];
  context.drawImage(bitmap, (width - w) / 2, (height - h) / 2, w, h);
  return context.getImageData(0, 0, width, height).data;
}

/** Return a model's input of a picture. */
export function pictureTensor(bitmap, page, dataType) {
  const pixels = resized(bitmap, page), size = page.width * page.height;
  const whole = dataType !== "float32";
  const tensor = whole ? new Uint8Array(3 * size) : new Float32Array(3 * size);
  for (let channel = 0; channel < 3; channel++) {
    const source = page.bgr ? 2 - channel : channel;
    for (let i = 0; i < size; i++) {
      const value = pixels[4 * i + source];
      const at = page.channelsLast ? 3 * i + channel : channel * size + i;
      tensor[at] = whole ? value : (value / 255 - page.mean[channel]) / page.std[channel];
    }
  }
  return tensor;
}

/** Return scores as they are if they are probabilities, else their softmax. */
function probabilities(scores) {
  const sum = scores.reduce((a, b) => a + b, 0);
  if (scores.every((score) => score >= 0) && Math.abs(sum - 1) < 1e-3) return scores;
  const most = Math.max(...scores), raised = scores.map((score) => Math.exp(score - most));
  const whole = raised.reduce((a, b) => a + b, 0);
  return raised.map((value) => value / whole);
}

export async function show(model, section) {
  const { page } = model;
  const results = element("div"), chooser = element("input", { type: "file", accept: "image/*", hidden: "" });
  const zone = element("div", { class: "drop", tabindex: "0", role: "button" }, "Drop a picture here, or click to choose one.");
  let shown = null;

  async function classify(file) {
    const bitmap = await createImageBitmap(file);
    const start = performance.now();
    const outputs = await model.run({ [page.input]: pictureTensor(bitmap, page, model.inputs[page.input].dataType) });
    const milliseconds = performance.now() - start;
    if (shown) URL.revokeObjectURL(shown);
    shown = URL.createObjectURL(file);
    zone.replaceChildren(element("img", { src: shown, alt: file.name ?? "" }));
    const chances = probabilities(Array.from(outputs[page.output], Number));
    const best = chances.map((chance, i) => [chance, i]).sort(([a], [b]) => b - a).slice(0, SHOWN);
    results.replaceChildren(
      element("table", {}, element("tbody", {}, ...best.map(([chance, i]) => element("tr", {},
        element("td", {}, page.labels[i] || `Class ${i}`,
          element("span", { class: "bar", style: `width: ${Math.max(1, 100 * chance)}%` })),
        element("td", { class: "number" }, `${(100 * chance).toFixed(1)} %`))))),
      element("p", { class: "note" }, `${milliseconds.toFixed(1)} ms, with transfers`));
    document.documentElement.dataset.classified = String(best[0][1]);
  }

  const taken = (files) => files.length && classify(files[0]).catch((error) => {
    results.replaceChildren(element("p", { class: "error" }, `The picture cannot be shown: ${error.message}`));
  });
  chooser.addEventListener("change", () => taken(chooser.files));
  zone.addEventListener("click", () => chooser.click());
  zone.addEventListener("keydown", ({ key }) => key === "Enter" && chooser.click());
  for (const kind of ["dragover", "dragleave", "drop"]) {
    zone.addEventListener(kind, (event) => {
      event.preventDefault();
      zone.classList.toggle("over", kind === "dragover");
      if (kind === "drop") taken(event.dataTransfer.files);
    });
  }
  section.append(element("h2", {}, "What is in a picture?"), element("div", { class: "side" }, zone, results), chooser);
}
