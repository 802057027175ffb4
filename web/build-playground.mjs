// Builds the playground, one page with everything in it: build-playground.mjs PLAYGROUND.wasm OUT.html
import { writeFileSync } from "node:fs";
import { single } from "./bundle.mjs";

const [wasm, to] = process.argv.slice(2);
const more = { alias: { "playground.wasm": wasm }, loader: { ".wasm": "binary" } };
writeFileSync(to, await single("src/playground/index.html", "src/playground/main.tsx", " 'wasm-unsafe-eval'", more));
