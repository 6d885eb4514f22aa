// Runs a decoder token by token. Its caches stay on the device, and masks and positions come from a table of the folder.
//   import { loadDecoder } from "./webnn-wgpu-decoder.js";
//   const decoder = await loadDecoder("./", { device });           // the options of the player's `load`
//   const { logits } = await decoder.step(5, ["logits"]);           // the number of a token
//   decoder.truncate(0);                                            // forgets all tokens

import { load, view } from "./webnn-wgpu-player.js";

/** Load a folder of a decoder. */
export const loadDecoder = async (source, options) => Decoder.of(await load(source, options));

/** A decoder on a device. Made by `loadDecoder`, or by `Decoder.of` for a model of the player. */
export class Decoder {
  static async of(model) {
    const { steps } = model._json;
    if (!steps) throw new TypeError(`${model.name} is no decoder`);
    const tables = await Promise.all(Object.entries(steps.tables).map(async ([name, { file, offset, bytes }]) => (
      [name, (await model._read(file)).slice(offset, offset + bytes)])));
    return new Decoder(model, steps, tables);
  }

  constructor(model, { rows, tokens }, tables) {
    this.model = model;
    /** The number of tokens that the caches hold. */
    this.capacity = rows;
    /** The number of tokens in the caches. */
    this.length = 0;
    this._tokens = tokens;
    this._tables = tables;
  }

  /**
   * Add a token to the caches. Steps wait for each other.
   * @param {number} token the number of the token.
   * @param {string[]} [names] the outputs to read back, by default all that update no cache.
   * @returns {Promise<Record<string, ArrayBufferView>>} these outputs by name.
   */
  step(token, names) {
    const { model } = this, row = this.length;
    if (row >= this.capacity) throw new RangeError(`The caches are full: they hold ${this.capacity} tokens`);
    const feeds = { [this._tokens]: Array(model.inputs[this._tokens].elements).fill(this._number(token)) };
    for (const [name, table] of this._tables) {
      const size = table.byteLength / this.capacity;
      feeds[name] = view(model.inputs[name], table.slice(row * size, (row + 1) * size));
    }
    this.length++;
    return model.run(feeds, names ?? Object.keys(model.outputs).filter((name) => !model.outputs[name].alias));
  }

  /** Forget all tokens behind the first `length`. */
  truncate(length) {
    if (!(length >= 0 && length <= this.length)) throw new RangeError(`There are ${this.length} tokens`);
    this.length = length;
  }

  _number(token) {
    return this.model.inputs[this._tokens].dataType.endsWith("64") ? BigInt(token) : token;
  }
}
