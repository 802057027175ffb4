// What all pages are built by: script and style from an entry, and one file of them.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { build } from "esbuild";

/** The script and the style of an entry. */
export async function bundle(entry, more = {}) {
  const { outputFiles } = await build({
    entryPoints: { app: entry },
    bundle: true,
    minify: true,
    write: false,
    outdir: "out",
    legalComments: "none",
    target: ["chrome123", "firefox120", "safari17.5"],
    jsx: "automatic",
    jsxImportSource: "preact",
    ...more,
  });
  const text = (end) => outputFiles.find((file) => file.path.endsWith(end)).text;
  return { script: text(".js"), style: text(".css") };
}

const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/** The page in one file: nothing but its own script and style has an effect. `also` are further sources of scripts. */
export async function single(page, entry, also = "", more = {}) {
  const { style, ...made } = await bundle(entry, more);
  // What stands in a script must not end it.
  const script = made.script.replaceAll("</script", "<\\/script");
  const policy = `default-src 'none'; script-src ${hash(script)}${also}; style-src ${hash(style)}; img-src data:; base-uri 'none'; form-action 'none'`;
  const parts = {
    policy: `<meta http-equiv="Content-Security-Policy" content="${policy}">`,
    style: `<style>${style}</style>`,
    script: `<script>${script}</script>`,
  };
  return readFileSync(page, "utf8").replace(/<!--(policy|style|script)-->/g, (_, part) => parts[part]);
}
