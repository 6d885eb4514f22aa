// Runs a graph that webnn_wgpu compiled into a folder. The module has no dependencies and is the same for all folders.
//   import { load } from "./webnn-wgpu-player.js";
//   const model = await load("./", { device });                   // device: the page's own GPUDevice, else one is requested
//   const { y } = await model.run({ x: new Float32Array(n) });    // typed arrays by name
//   model.encode(encoder, { x: buffer }, { y: buffer });          // on the page's buffers and its encoder or compute pass
//   model.destroy();

const FORMAT = "webnn-wgpu-model", VERSION = 1;

const PAD_BYTES = 32; // Buffers of tensors are padded to a multiple of this.

/** Sets of the page's buffers whose bind groups `encode` keeps. */
const KEPT_SETS = 16;

/** The maximum number of arithmetic operations in a submit of `run`. Browsers give up a device that is busy for seconds. */
const OPERATIONS_PER_SUBMIT = 2e10;

const ARRAYS = {
  float32: Float32Array, float16: globalThis.Float16Array ?? Uint16Array, int32: Int32Array, uint32: Uint32Array,
  int64: BigInt64Array, uint64: BigUint64Array, int8: Int8Array, uint8: Uint8Array,
};

const LAYOUTS = {
  read: () => ({ buffer: { type: "read-only-storage" } }),
  write: () => ({ buffer: { type: "storage" } }),
  texture: (float) => ({ storageTexture: { access: "read-only", format: float ? "rgba32float" : "rgba8sint", viewDimension: "2d" } }),
  sampled: (float) => ({ texture: { sampleType: float ? "unfilterable-float" : "sint", viewDimension: "2d" } }),
};

const padded = (bytes) => Math.ceil(bytes / PAD_BYTES) * PAD_BYTES;

/**
 * Load a folder.
 * @param {string | URL | ((file: string) => Promise<ArrayBuffer>)} source the folder's address, or a function that returns a file.
 * @param {object} [options]
 * @param {GPUDevice} [options.device] the page's own device. By default one is requested with what the model requires.
 * @param {GPUAdapter} [options.adapter] the adapter to request the device from.
 * @param {(done: number, total: number) => void} [options.progress] is called with the bytes of weights that are uploaded.
 * @param {number} [options.operationsPerSubmit] divides long runs into several submits.
 * @returns {Promise<Model>}
 */
export async function load(source, options = {}) {
  const read = typeof source === "function" ? source : reader(source);
  const json = JSON.parse(new TextDecoder().decode(await read("model.json")));
  if (json.format !== FORMAT || json.version !== VERSION) {
    throw new TypeError(`model.json has format ${json.format}, version ${json.version}; this player reads ${FORMAT}, ${VERSION}`);
  }
  const owned = !options.device;
  const device = options.device ?? await requestDevice(json.requires, options.adapter);
  const lacks = lacking(json.requires, device.features, device.limits, device.adapterInfo);
  if (lacks) throw new Error(`The device lacks ${lacks}`);
  const model = new Model(json, device, owned, options.operationsPerSubmit ?? OPERATIONS_PER_SUBMIT);
  try {
    await model._create(read, options.progress ?? (() => {}));
  } catch (error) {
    model.destroy();
    throw error;
  }
  return model;
}

function reader(source) {
  const base = new URL(source, globalThis.location?.href);
  if (!base.pathname.endsWith("/")) base.pathname += "/";
  return async (file) => {
    const response = await fetch(new URL(file, base));
    if (!response.ok) throw new Error(`${file}: ${response.status} ${response.statusText}`);
    return response.arrayBuffer();
  };
}

/** Return the difference to what a model requires, in words; "" if there is none. */
function lacking(requires, has, limits, info) {
  for (const feature of requires.features) if (!has.has(feature)) return `the feature ${feature}`;
  for (const [name, least] of Object.entries(requires.limits)) {
    if (!(limits[name] >= least)) return `the limit ${name} of ${least}: it has ${limits[name]}`;
  }
  for (const name of ["minStorageBufferOffsetAlignment", "minUniformBufferOffsetAlignment"]) {
    if (limits[name] > requires.alignment) return `${name} of at most ${requires.alignment}: it has ${limits[name]}`;
  }
  for (const feature of requires.languageFeatures) {
    if (!navigator.gpu.wgslLanguageFeatures.has(feature)) return `WGSL's feature ${feature}`;
  }
  const size = requires.subgroupSize;
  if (size && (info.subgroupMinSize !== size || info.subgroupMaxSize !== size)) {
    return `subgroups of ${size}: it has ${info.subgroupMinSize} to ${info.subgroupMaxSize}`;
  }
  return "";
}

async function requestDevice(requires, given) {
  if (!navigator.gpu) throw new Error("This browser has no WebGPU, or the page is neither https: nor on localhost");
  const adapter = given ?? await navigator.gpu.requestAdapter();
  if (!adapter) throw new Error("This browser has no WebGPU adapter");
  const lacks = lacking(requires, adapter.features, adapter.limits, adapter.info);
  if (lacks) throw new Error(`The adapter lacks ${lacks}`);
  return adapter.requestDevice({ requiredFeatures: requires.features, requiredLimits: requires.limits });
}

/** Return bytes as the typed array of a tensor. */
export const view = (tensor, bytes) => new ARRAYS[tensor.dataType](bytes);

/** A graph on a device. Made by `load`. */
class Model {
  constructor(json, device, owned, operationsPerSubmit) {
    this.name = json.name;
    this.device = device;
    /** Input name -> {dataType, shape, elements, bytes}: `bytes` is the least size of a buffer for `encode`. */
    this.inputs = tensors(json.inputs);
    /** Output name -> the same, with the input whose memory it updates as `alias`. */
    this.outputs = tensors(json.outputs);
    /** What the page's script reads: the name of the device that computed the sample, and what to show. */
    this.sample = json.sample;
    this.page = json.page;
    this._json = json;
    this._owned = owned;
    this._all = [];
    this._sets = new Map();
    this._ids = new WeakMap();
    this._lastId = 0;
    this._tail = Promise.resolve();
    this._parts = parts(json.dispatches, operationsPerSubmit);
    this._destroyed = false;
    this._lost = device.lost.then((info) => {
      throw new Error(`The device is lost: ${info.message || info.reason}`);
    });
    this._lost.catch(() => {});
  }

  async _create(read, progress) {
    const { device, _json: json } = this;
    const files = new Map();
    this._read = (file) => {
      if (!files.has(file)) files.set(file, read(file));
      return files.get(file).then((data) => {
        if (data.byteLength === json.files[file]) return data;
        throw new Error(`${file} has ${data.byteLength} bytes instead of ${json.files[file]}`);
      });
    };
    const sources = await Promise.all(json.kernels.map((kernel) => read(kernel.file)));
    const filters = ["validation", "out-of-memory", "internal"];
    for (const filter of filters) device.pushErrorScope(filter);
    const [made] = await Promise.allSettled([this._createAll(sources, files, progress)]);
    const errors = await Promise.all(filters.map(() => device.popErrorScope()));
    if (made.status === "rejected") throw made.reason;
    for (const error of errors) if (error) throw new Error(`The device refused the model: ${error.message}`);
  }

  async _createAll(sources, files, progress) {
    const { device, _json: json } = this;
    const pipelines = Promise.all(json.kernels.map((kernel, i) => this._pipeline(kernel, sources[i])));
    this._slots = json.slots.map((bytes, i) => this._buffer(bytes, `slot ${i}`));
    this._constants = [];
    const total = json.constants.reduce((sum, { bytes }) => sum + bytes, 0);
    let done = 0, file = null;
    for (const constant of json.constants) {
      if (file !== null && file !== constant.file) files.delete(file);
      file = constant.file;
      this._constants.push(this._constant(constant, await this._read(file)));
      progress(done += constant.bytes, total);
    }
    if (file !== null) files.delete(file);
    if (json.uniforms) {
      const usage = GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST;
      this._uniforms = this._buffer(json.uniforms.bytes, "uniforms", usage);
      device.queue.writeBuffer(this._uniforms, 0, await this._read(json.uniforms.file), json.uniforms.offset, json.uniforms.bytes);
    }
    const inputs = new Map(Object.entries(this.inputs).map(([name, { bytes }]) => [name, this._buffer(bytes, `input ${name}`)]));
    const outputs = new Map(Object.entries(this.outputs).map(([name, { bytes, alias }]) => [
      name, alias ? inputs.get(alias) : this._buffer(bytes, `output ${name}`)]));
    this._ends = { inputs, outputs };
    const size = Object.values(this.outputs).reduce((sum, { bytes }) => sum + bytes, 0);
    this._staging = this._buffer(size, "read back", GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST);
    this._pipelines = await pipelines;
    this._groups = json.dispatches.map((dispatch) => 
      dispatch.bindings.some((bound) => "input" in bound || "output" in bound) ? null : this._group(dispatch, this._ends));
    this._own = this._groupsOver(this._ends);
  }

  async _pipeline(kernel, source) {
    const { device } = this;
    const layouts = kernel.bindings.map(({ access, element }) => LAYOUTS[access](element === "float32"));
    if (kernel.uniforms.length) layouts.push({ buffer: { type: "uniform" } });
    const entries = layouts.map((layout, binding) => ({ binding, visibility: GPUShaderStage.COMPUTE, ...layout }));
    const group = device.createBindGroupLayout({ label: kernel.name, entries });
    const layout = device.createPipelineLayout({ bindGroupLayouts: [group] });
    const module = device.createShaderModule({ label: kernel.name, code: new TextDecoder().decode(source) });
    try {
      const pipeline = await device.createComputePipelineAsync({
        label: kernel.name, layout, compute: { module, entryPoint: "main" } });
      return { pipeline, group };
    } catch (error) {
      const { messages } = await module.getCompilationInfo();
      const said = messages.filter(({ type }) => type === "error").map((m) => `${m.lineNum}:${m.linePos}: ${m.message}`);
      throw new Error(`${kernel.file}: ${said.join("; ") || error.message}`);
    }
  }

  _buffer(bytes, label, usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST) {
    const buffer = this.device.createBuffer({ label, size: padded(bytes), usage });
    this._all.push(buffer);
    return buffer;
  }

  _constant({ offset, bytes, texture }, data) {
    const { queue } = this.device;
    if (!texture) {
      const buffer = this._buffer(bytes, "constant");
      write(queue, buffer, new Uint8Array(data, offset, bytes));
      return buffer;
    }
    const [width, height] = texture, texelBytes = bytes / (width * height);
    const made = this.device.createTexture({
      size: [width, height], format: texelBytes === 16 ? "rgba32float" : "rgba8sint",
      usage: GPUTextureUsage.STORAGE_BINDING | GPUTextureUsage.TEXTURE_BINDING | GPUTextureUsage.COPY_DST });
    this._all.push(made);
    queue.writeTexture({ texture: made }, data, { offset, bytesPerRow: width * texelBytes, rowsPerImage: height }, [width, height]);
    return made.createView();
  }

  _group(dispatch, ends) {
    const kernel = this._json.kernels[dispatch.kernel];
    const entries = dispatch.bindings.map((bound, binding) => ({ binding, resource: this._resource(bound, ends) }));
    if (kernel.uniforms.length) {
      const size = Math.ceil(kernel.uniforms.length / 4) * 16;
      entries.push({ binding: entries.length, resource: { buffer: this._uniforms, offset: dispatch.uniform, size } });
    }
    const { group } = this._pipelines[dispatch.kernel];
    return this.device.createBindGroup({ label: dispatch.label, layout: group, entries });
  }

  _resource(bound, ends) {
    const part = (buffer) => ({ buffer, offset: bound.offset, size: bound.bytes });
    if ("input" in bound) return part(ends.inputs.get(bound.input));
    if ("output" in bound) return part(ends.outputs.get(bound.output));
    if ("slot" in bound) return part(this._slots[bound.slot]);
    const constant = this._constants[bound.constant];
    return constant instanceof GPUTextureView ? constant : part(constant);
  }

  _groupsOver(ends) {
    return this._json.dispatches.map((dispatch, i) => this._groups[i] ?? this._group(dispatch, ends));
  }

  _record(pass, groups, first, last) {
    for (let i = first; i < last; i++) {
      const { kernel, grid } = this._json.dispatches[i];
      pass.setPipeline(this._pipelines[kernel].pipeline);
      pass.setBindGroup(0, groups[i]);
      pass.dispatchWorkgroups(...grid);
    }
  }

  /**
   * Run the graph. Runs wait for each other.
   * @param {Record<string, ArrayBufferView | number[]>} feeds an array for each input. Inputs that outputs update may be absent.
   * @param {string[]} names the outputs to read back.
   * @returns {Promise<Record<string, ArrayBufferView>>} these outputs by name.
   */
  run(feeds, names = Object.keys(this.outputs)) {
    const arrays = this._checked(feeds), missing = names.find((name) => !Object.hasOwn(this.outputs, name));
    if (missing !== undefined) throw new TypeError(`There is no output ${missing}`);
    const result = this._tail.then(() => Promise.race([this._run(arrays, names), this._lost]));
    this._tail = result.catch(() => {});
    return result;
  }

  async _run(arrays, names) {
    if (this._destroyed) throw new Error("The model was destroyed");
    const { device } = this, last = this._parts.length - 1, wanted = [...new Set(names)].map((name) => [name, this.outputs[name]]);
    for (const [name, array] of arrays) write(device.queue, this._ends.inputs.get(name), array);
    for (const [i, [first, end]] of this._parts.entries()) {
      const encoder = device.createCommandEncoder();
      const pass = encoder.beginComputePass();
      this._record(pass, this._own, first, end);
      pass.end();
      let at = 0;
      for (const [name, { bytes }] of i < last ? [] : wanted) {
        encoder.copyBufferToBuffer(this._ends.outputs.get(name), 0, this._staging, at, bytes);
        at += bytes;
      }
      device.queue.submit([encoder.finish()]);
      if (i < last) await device.queue.onSubmittedWorkDone();
    }
    await this._staging.mapAsync(GPUMapMode.READ);
    const mapped = this._staging.getMappedRange();
    let at = 0;
    const results = wanted.map(([name, tensor]) => {
      const data = mapped.slice(at, at + tensor.elements * ARRAYS[tensor.dataType].BYTES_PER_ELEMENT);
      at += tensor.bytes;
      return [name, view(tensor, data)];
    });
    this._staging.unmap();
    return Object.fromEntries(results);
  }

  _checked(feeds) {
    for (const name of Object.keys(feeds)) {
      if (!Object.hasOwn(this.inputs, name)) throw new TypeError(`There is no input ${name}`);
    }
    const kept = ([name]) => Object.hasOwn(feeds, name) || Object.values(this.outputs).every(({ alias }) => alias !== name);
    return Object.entries(this.inputs).filter(kept).map(([name, tensor]) => {
      const given = feeds[name], Kind = ARRAYS[tensor.dataType];
      const array = Array.isArray(given) ? Kind.from(given) : given;
      const fits = array instanceof Kind || (tensor.dataType === "float16" && array instanceof Uint16Array);
      if (!fits || array.length !== tensor.elements) {
        throw new TypeError(`The input ${name} must be a ${Kind.name} of ${tensor.elements} elements`);
      }
      return [name, new Uint8Array(array.buffer, array.byteOffset, array.byteLength)];
    });
  }

  /**
   * Record a run over the page's buffers. Nothing is submitted, and nothing is read back.
   * @param {GPUCommandEncoder | GPUComputePassEncoder} encoder where to record.
   * @param {Record<string, GPUBuffer>} inputs a buffer with the usage STORAGE for each input, of at least its `bytes`.
   * @param {Record<string, GPUBuffer>} outputs a buffer for each output. That of an output with an alias is its input's.
   */
  encode(encoder, inputs, outputs) {
    if (this._destroyed) throw new Error("The model was destroyed");
    const ends = { inputs: this._buffers(inputs, this.inputs, "input"), outputs: this._buffers(outputs, this.outputs, "output") };
    for (const [name, { alias }] of Object.entries(this.outputs)) {
      if (alias && ends.outputs.get(name) !== ends.inputs.get(alias)) {
        throw new TypeError(`The output ${name} and the input ${alias} must be one buffer`);
      }
    }
    const key = [...ends.inputs.values(), ...ends.outputs.values()].map((buffer) => this._id(buffer)).join();
    const groups = this._sets.get(key) ?? this._groupsOver(ends);
    this._sets.delete(key);
    this._sets.set(key, groups);
    if (this._sets.size > KEPT_SETS) this._sets.delete(this._sets.keys().next().value);
    const pass = encoder.beginComputePass?.() ?? encoder;
    this._record(pass, groups, 0, groups.length);
    if (pass !== encoder) pass.end();
  }

  _buffers(given, wanted, kind) {
    return new Map(Object.entries(wanted).map(([name, { bytes }]) => {
      const buffer = Object.hasOwn(given, name) ? given[name] : undefined;
      if (!(buffer instanceof GPUBuffer) || buffer.size < bytes) {
        throw new TypeError(`The ${kind} ${name} must be a GPUBuffer of at least ${bytes} bytes`);
      }
      return [name, buffer];
    }));
  }

  _id(buffer) {
    if (!this._ids.has(buffer)) this._ids.set(buffer, ++this._lastId);
    return this._ids.get(buffer);
  }

  /** Return the arrays of the folder's sample: {inputs, outputs} by name. */
  async readSample() {
    const arrays = async (places, all) => Object.fromEntries(await Promise.all(
      Object.entries(places).map(async ([name, { file, offset, bytes }]) => (
        [name, view(all[name], (await this._read(file)).slice(offset, offset + bytes))]))));
    const { inputs, outputs } = this.sample;
    return { inputs: await arrays(inputs, this.inputs), outputs: await arrays(outputs, this.outputs) };
  }

  /** Free the model's buffers and textures, and the device if the page did not pass one. */
  destroy() {
    this._destroyed = true;
    for (const resource of this._all) resource.destroy();
    this._all = [];
    this._sets.clear();
    if (this._owned) this.device.destroy();
  }
}

function tensors(all) {
  return Object.fromEntries(Object.entries(all).map(([name, tensor]) => {
    const elements = tensor.shape.reduce((product, size) => product * size, 1);
    return [name, { ...tensor, elements, bytes: padded(elements * ARRAYS[tensor.dataType].BYTES_PER_ELEMENT) }];
  }));
}

/** Return ranges of dispatches of about as many operations each. */
function parts(dispatches, most) {
  const found = [];
  let first = 0, sum = 0;
  dispatches.forEach(({ operations }, i) => {
    if (i > first && sum + operations > most) {
      found.push([first, i]);
      first = i;
      sum = 0;
    }
    sum += operations;
  });
  found.push([first, dispatches.length]);
  return found;
}

/** Write bytes into a buffer, in whole words. */
function write(queue, buffer, bytes) {
  const words = bytes.length % 4 ? new Uint8Array(Math.ceil(bytes.length / 4) * 4) : bytes;
  if (words !== bytes) words.set(bytes);
  queue.writeBuffer(buffer, 0, words);
}
