// A form that continues a list of tokens by the most likely next ones.

import { Decoder } from "./webnn-wgpu-decoder.js";
import { difference, element } from "./webnn-wgpu-page.js";

/** Return the position of the greatest number of the last row of scores. */
function best(scores, size) {
  const row = scores.subarray(scores.length - size);
  return row.reduce((most, score, i) => (score > row[most] ? i : most), 0);
}

export async function show(model, section) {
  const decoder = await Decoder.of(model), { output, tokens, scores, device } = model.page;
  const size = model.outputs[output].shape.at(-1);
  const check = element("p", { class: "note" }), results = element("p");
  const given = element("input", { value: tokens.join(" "), "aria-label": "Numbers of tokens" });
  const count = element("input", { type: "number", value: "8", min: "1", "aria-label": "New tokens" });
  const button = element("button", {}, "Continue");

  async function compare() {
    const found = [];
    for (const token of tokens) found.push(...(await decoder.step(token, [output]))[output].slice(0, scores[0].length));
    const { largest, relative } = difference(found, scores.flat());
    check.replaceChildren("Scores of the first tokens: largest difference ", largest.toExponential(1), ", relative ",
      element("span", { class: relative <= 1e-3 ? "good" : "bad" }, relative.toExponential(1)), `. Compared with ${device}.`);
    document.documentElement.dataset.difference = String(Number.isNaN(relative) ? Infinity : relative);
  }

  async function proceed() {
    button.disabled = true;
    try {
      decoder.truncate(0);
      const all = given.value.split(/[\s,]+/).filter(Boolean).map(Number), wanted = all.length + Number(count.value);
      const start = performance.now();
      for (let i = 0; all.length < wanted; i++) {
        const step = await decoder.step(all[i], i < all.length - 1 ? [] : [output]);
        if (i === all.length - 1) all.push(best(step[output], size));
        results.textContent = all.join(" ");
      }
      const each = (performance.now() - start) / decoder.length;
      results.append(element("span", { class: "note" }, ` · ${each.toFixed(1)} ms per token`));
      document.documentElement.dataset.tokens = all.join(" ");
    } catch (error) {
      results.replaceChildren(element("span", { class: "error" }, error.message));
    }
    button.disabled = false;
  }

  button.addEventListener("click", proceed);
  section.append(element("h2", {}, "Which tokens come next?"), element("p", {}, given, " and ", count, " more ", button), results, check);
  await compare();
  await proceed();
}
