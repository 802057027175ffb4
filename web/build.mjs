// Builds dist/ (or the directory that is named) from src/. dist/ is committed, so that `make build` needs no npm.
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { bundle, single } from "./bundle.mjs";

const to = process.argv[2] ?? "dist";
mkdirSync(to, { recursive: true });
const { script, style } = await bundle("src/main.tsx");
writeFileSync(`${to}/app.js`, script);
writeFileSync(`${to}/app.css`, style);
copyFileSync("src/index.html", `${to}/index.html`);
const playground = await bundle("src/playground/main.tsx", { alias: { "playground.wasm": resolve("src/playground/none.ts") } });
writeFileSync(`${to}/playground.js`, playground.script);
writeFileSync(`${to}/playground.css`, playground.style);
const parts = { policy: "", style: '<link rel="stylesheet" href="/playground.css">', script: '<script src="/playground.js"></script>' };
const page = readFileSync("src/playground/index.html", "utf8");
writeFileSync(`${to}/playground.html`, page.replace(/<!--(policy|style|script)-->/g, (_, part) => parts[part]));
writeFileSync(`${to}/report.html`, await single("src/report/index.html", "src/report/main.tsx"));
