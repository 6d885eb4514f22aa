// Runs modules that `to_javascript` wrote, with a recorder in place of MLGraphBuilder, and prints what they built as JSON.
// The second file is a list of {module, weights, manifest}. A module that fails has its error in place of its record.
import {readFile} from "node:fs/promises";
import {pathToFileURL} from "node:url";

const [, , formsPath, modulesPath] = process.argv;
const forms = JSON.parse(await readFile(formsPath, "utf8"));
const SIZES = {float32: 4, float16: 2, int32: 4, uint32: 4, int64: 8, uint64: 8, int8: 1, uint8: 1, int4: 0.5, uint4: 0.5};
let calls = [];
let count = 0;

class Operand {
  constructor() {
    this.id = count++;
  }
}

const fail = (text) => {
  throw new Error(text);
};

const plain = (value) => {
  if (value instanceof Operand) return {operand: value.id};
  if (typeof value === "bigint") return {integer: String(value)};
  if (typeof value === "number" && !Number.isFinite(value)) return {number: String(value)};
  if (Array.isArray(value)) return value.map(plain);
  return value;
};

const descriptor = ({dataType, shape, ...rest}) => {
  if (!(dataType in SIZES) || !Array.isArray(shape) || Object.keys(rest).length) fail("bad descriptor");
  return {dataType, shape};
};

class Recorder {
  constructor(context) {
    if (context !== "context") fail("no context");
  }

  input(name, type) {
    const operand = new Operand();
    calls.push({method: "input", name, type: descriptor(type), id: operand.id});
    return operand;
  }

  constant(type, buffer) {
    const bytes = ArrayBuffer.isView(buffer) ? new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength)
      : new Uint8Array(buffer);
    const size = Math.ceil(type.shape.reduce((a, b) => a * b, 1) * SIZES[type.dataType]);
    if (bytes.length !== size) fail(`constant of ${bytes.length} bytes, not ${size}`);
    const operand = new Operand();
    calls.push({method: "constant", type: descriptor(type), data: Buffer.from(bytes).toString("base64"), id: operand.id});
    return operand;
  }

  build(outputs) {
    for (const operand of Object.values(outputs)) operand instanceof Operand || fail("an output is no operand");
    return {outputs: Object.entries(outputs).map(([name, operand]) => [name, operand.id])};
  }
}

for (const [name, form] of Object.entries(forms)) {
  Recorder.prototype[name] = function (...given) {
    const known = form.operands + form.arguments.length;
    if (given.length < known || given.length > known + 1) fail(`${name} takes ${known} arguments and options`);
    const options = given.length > known ? given[known] : {};
    for (const option of Object.keys(options)) form.options.includes(option) || fail(`${name} has no option ${option}`);
    const operands = given.slice(0, form.operands);
    for (const operand of operands.flat()) operand instanceof Operand || fail(`an operand of ${name} is none`);
    const length = form.list ? (Array.isArray(given[1]) ? given[1].length : 4) : 1;
    const results = Array.from({length}, () => new Operand());
    calls.push({
      method: name,
      operands: operands.map(plain),
      arguments: Object.fromEntries(form.arguments.map((argument, i) => [argument, plain(given[form.operands + i])])),
      options: Object.fromEntries(Object.entries(options).map(([option, value]) => [option, plain(value)])),
      results: results.map((operand) => operand.id),
    });
    return form.list ? results : results[0];
  };
}

globalThis.MLGraphBuilder = Recorder;
globalThis.fetch = async (path) => {
  const data = await readFile(path);
  return {
    ok: true,
    url: path,
    arrayBuffer: async () => data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength),
    json: async () => JSON.parse(data.toString("utf8")),
  };
};

async function recorded({module: path, weights: weightsPath, manifest}) {
  calls = [];
  count = 0;
  try {
    const module = await import(pathToFileURL(path));
    const weights = weightsPath ? await module.WeightsFile.load(weightsPath, manifest) : undefined;
    const graph = await module.buildGraph("context", weights);
    return {calls, ...graph, inputs: Object.entries(module.inputs), types: Object.entries(module.outputs)};
  } catch (error) {
    return {error: error.stack};
  }
}

const records = [];
for (const each of JSON.parse(await readFile(modulesPath, "utf8"))) records.push(await recorded(each));
process.stdout.write(JSON.stringify(records));
