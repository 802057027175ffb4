// Builds the playground, one page with everything in it: build-playground.mjs PLAYGROUND.wasm OUT.html
import { build } from "esbuild";
import { readFileSync, writeFileSync } from "node:fs";

const [wasm, to] = process.argv.slice(2);
const { outputFiles } = await build({
  entryPoints: { app: "src/playground/main.tsx" },
  bundle: true,
  minify: true,
  write: false,
  outdir: "out",
  legalComments: "none",
  target: ["chrome123", "firefox120", "safari17.5"],
  jsx: "automatic",
  jsxImportSource: "preact",
  alias: { "playground.wasm": wasm },
  loader: { ".wasm": "binary" },
});
const text = (end) => outputFiles.find((file) => file.path.endsWith(end)).text;
// What stands in a script must not end it.
const parts = { "<!--style-->": `<style>${text(".css")}</style>`, "<!--script-->": `<script>${text(".js").replaceAll("</script", "<\\/script")}</script>` };
const page = readFileSync("src/playground/index.html", "utf8").replace(/<!--(style|script)-->/g, (mark) => parts[mark]);
writeFileSync(to, page);
