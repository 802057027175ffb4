// Builds dist/ (or the directory that is named) from src/. dist/ is committed, so that `make build` needs no npm.
import { build } from "esbuild";
import { copyFileSync, mkdirSync } from "node:fs";

const to = process.argv[2] ?? "dist";
mkdirSync(to, { recursive: true });
await build({
  entryPoints: { app: "src/main.tsx" },
  bundle: true,
  minify: true,
  legalComments: "none",
  target: ["chrome123", "firefox120", "safari17.5"],
  jsx: "automatic",
  jsxImportSource: "preact",
  outdir: to,
});
copyFileSync("src/index.html", `${to}/index.html`);
