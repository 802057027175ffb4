// Builds dist/ (or the directory that is named) from src/. dist/ is committed, so that `make build` needs no npm.
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { bundle, single } from "./bundle.mjs";

const to = process.argv[2] ?? "dist";
mkdirSync(to, { recursive: true });
const { script, style } = await bundle("src/main.tsx");
writeFileSync(`${to}/app.js`, script);
writeFileSync(`${to}/app.css`, style);
copyFileSync("src/index.html", `${to}/index.html`);
writeFileSync(`${to}/report.html`, await single("src/report/index.html", "src/report/main.tsx"));
