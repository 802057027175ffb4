// A report: one file with its data, opened from a disk.

import "../app.css";
import "uplot/dist/uPlot.min.css";
import "./report.css";
import { render } from "preact";
import { ChartView, plots } from "./chart";
import type { Block, Page } from "./model";
import { TableView } from "./table";
import { plain } from "../text";

/** The blocks below each heading; what stands before the first has none. */
function sections(blocks: Block[]): Block[][] {
  const found: Block[][] = [[]];
  for (const block of blocks) {
    if (block.heading !== undefined) found.push([]);
    found[found.length - 1]?.push(block);
  }
  return found.filter((section) => section.length > 0);
}

function BlockView({ block }: { block: Block }) {
  if (block.heading !== undefined) return <h2>{plain(block.heading)}</h2>;
  if (block.text !== undefined) return <p>{plain(block.text)}</p>;
  if (block.table) return <TableView table={block.table} />;
  return block.chart ? <ChartView chart={block.chart} /> : null;
}

function Report({ page }: { page: Page }) {
  return (
    <>
      <header><h1>{plain(page.title)}</h1><span class="fact muted">{plain(page.below)}</span></header>
      <main>{sections(page.blocks).map((blocks, n) => <section key={n}>{blocks.map((block, k) => <BlockView key={k} block={block} />)}</section>)}</main>
    </>
  );
}

/** In the present colours and width. */
function repaint() {
  for (const plot of plots) plot.fit();
}

/** Paper is light, and as wide as paper. */
function paper(on: boolean) {
  document.documentElement.classList.toggle("paper", on);
  repaint();
}

const page = JSON.parse(document.getElementById("report")?.textContent ?? "") as Page;
document.title = plain(page.title);
const root = document.getElementById("app");
if (root) render(<Report page={page} />, root);
addEventListener("beforeprint", () => paper(true));
addEventListener("afterprint", () => paper(false));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
// For tests, and for whoever looks at the data in the console.
Object.assign(globalThis, { cosched: { page, plots } });
