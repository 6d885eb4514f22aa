// Runs graphs, each a folder's files in base64, on one device.

import { load } from "/webnn-wgpu-player.js";

/** Graphs that are loaded side by side: their kernels compile at the same time. */
const SIDE_BY_SIDE = 8;

const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const text = (array) => {
  const raw = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
  let found = "";
  for (let i = 0; i < raw.length; i += 0x8000) found += String.fromCharCode(...raw.subarray(i, i + 0x8000));
  return btoa(found);
};

const ARRAYS = {
  float32: Float32Array, float16: globalThis.Float16Array ?? Uint16Array, int32: Int32Array, uint32: Uint32Array,
  int64: BigInt64Array, uint64: BigUint64Array, int8: Int8Array, uint8: Uint8Array,
};

async function run(device, { files, feeds }, kept) {
  try {
    const model = await load(async (file) => bytes(files[file]).buffer, { device });
    kept.push(model); // The browser compiles equal kernels once, as long as one of them lives.
    const arrays = Object.entries(feeds).map(([name, data]) => [
      name, new ARRAYS[model.inputs[name].dataType](bytes(data).buffer)]);
    const results = await model.run(Object.fromEntries(arrays));
    return { outputs: Object.fromEntries(Object.entries(results).map(([name, array]) => [name, text(array)])) };
  } catch (error) {
    return { error: String(error.message) };
  }
}

/** Return the outputs of graphs, or what went wrong with them. */
export async function runAll(address) {
  const cases = await (await fetch(address)).json();
  const adapter = await navigator.gpu.requestAdapter();
  const device = await adapter.requestDevice({ requiredFeatures: ["subgroups"].filter((f) => adapter.features.has(f)) });
  const errors = [];
  device.addEventListener("uncapturederror", ({ error }) => errors.push(error.message));
  const kept = [], results = [];
  for (let i = 0; i < cases.length; i += SIDE_BY_SIDE) {
    results.push(...await Promise.all(cases.slice(i, i + SIDE_BY_SIDE).map((each) => run(device, each, kept))));
  }
  for (const model of kept) model.destroy();
  device.destroy();
  return { results, errors };
}
