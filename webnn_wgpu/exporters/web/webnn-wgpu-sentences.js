// A form that compares sentences by their embeddings.

import { element } from "./webnn-wgpu-page.js";
import { WordPiece } from "./webnn-wgpu-wordpiece.js";

/** Return the embeddings of texts: the model's output, or the mean of its rows for the tokens, of unit length. */
async function embeddings(model, tokenizer, texts) {
  const { ids, mask, types, output } = model.page;
  const { dataType, shape: [batch, length], elements } = model.inputs[ids];
  const convert = dataType.endsWith("64") ? BigInt : Number;
  const found = [];
  for (let first = 0; first < texts.length; first += batch) {
    const some = texts.slice(first, first + batch);
    const encoded = some.map((text) => tokenizer.encode(text, length));
    const filled = (row) => {
      const values = encoded.flatMap(row);
      return [...values, ...Array(elements - values.length).fill(0)].map(convert);
    };
    const feeds = { [ids]: filled((each) => each.ids) };
    if (mask) feeds[mask] = filled(({ count }) => Array.from({ length }, (_, i) => Number(i < count)));
    if (types) feeds[types] = filled(() => Array(length).fill(0));
    const { [output]: rows } = await model.run(feeds);
    const size = model.outputs[output].shape.at(-1), pooled = model.outputs[output].shape.length === 2;
    encoded.forEach(({ count }, i) => {
      const sum = new Float64Array(size);
      for (let token = 0; token < (pooled ? 1 : count); token++) {
        const start = (pooled ? i : i * length + token) * size;
        for (let j = 0; j < size; j++) sum[j] += Number(rows[start + j]);
      }
      const norm = Math.hypot(...sum) || 1;
      found.push(sum.map((value) => value / norm));
    });
  }
  return found;
}

export async function show(model, section) {
  const tokenizer = new WordPiece(await (await fetch(`./${model.page.vocabulary}`)).json());
  const area = element("textarea", { rows: "6", "aria-label": "Sentences, one a line" });
  area.value = model.page.sentences.join("\n");
  const button = element("button", {}, "Compare"), results = element("div");

  async function compare() {
    const texts = area.value.split("\n").map((text) => text.trim()).filter(Boolean);
    button.disabled = true;
    try {
      const start = performance.now();
      const all = await embeddings(model, tokenizer, texts);
      const milliseconds = performance.now() - start;
      const likeness = all.map((a) => all.map((b) => a.reduce((sum, value, i) => sum + value * b[i], 0)));
      const cell = (value) => element("td", {
        class: "cell", style: `background: rgb(63 111 216 / ${Math.max(0, value) ** 2 * 0.9})` }, value.toFixed(2));
      results.replaceChildren(
        element("table", {},
          element("thead", {}, element("tr", {}, element("th"), ...texts.map((_, i) => element("th", { class: "cell" }, `${i + 1}`)))),
          element("tbody", {}, ...texts.map((text, i) => element("tr", {},
            element("td", {}, `${i + 1}. ${text}`), ...likeness[i].map(cell))))),
        element("p", { class: "note" }, `Cosine similarities of ${texts.length} sentences in ${milliseconds.toFixed(0)} ms`));
      document.documentElement.dataset.likeness = JSON.stringify(likeness);
    } catch (error) {
      results.replaceChildren(element("p", { class: "error" }, error.message));
    }
    button.disabled = false;
  }

  button.addEventListener("click", compare);
  section.append(element("h2", {}, "Which sentences mean the same?"), area, element("p", {}, button), results);
  await compare();
}
