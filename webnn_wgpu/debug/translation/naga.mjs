// Translates WGSL with naga: `node naga.mjs FOLDER_OF_NAGA_WASM`. A line of JSON on stdin, {"wgsl": text, "targets": [{"to":
// "hlsl" | "msl", ...options}]}, gets a line on stdout: {"texts": [...]}, or {"error": text} where naga refuses the shader.
import { createInterface } from "node:readline";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const naga = await import(pathToFileURL(join(process.argv[2], "dist", "node.js")).href);
const writers = { hlsl: naga.writeHlsl, msl: naga.writeMsl };

function translated({ wgsl, targets }) {
  let module, info;
  try {
    module = naga.parseWgsl(wgsl);
    info = naga.validate(module);
    return { texts: targets.map(({ to, ...options }) => writers[to](module, info, options)) };
  } catch (error) {
    return { error: error.formatted ?? String(error) };
  } finally {
    info?.free();
    module?.free();
  }
}

console.log(JSON.stringify({ version: naga.nagaVersion }));
for await (const line of createInterface({ input: process.stdin })) console.log(JSON.stringify(translated(JSON.parse(line))));
