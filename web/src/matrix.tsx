// The Ousterhout matrix as it turns, and its cycle: drawn from the plan and the clock, so the animation is smooth at any
// slot length.

import { useEffect, useRef } from "preact/hooks";
import type { Plan } from "./api";
import { clockAhead } from "./api";
import { phase, presence } from "./clockwork";
import { blend, colour, ink, rgb, stripes } from "./colour";
import { state } from "./store";
import { plain } from "./text";

/** A row stays bright for as long as the eye needs; shorter slots glow in proportion to their share of the time. */
const GLOW_MS = 80;
const ROW_PX_MAX = 34;
const MATRIX_PX = 900;
const GAP_PX = 4;
const HEAD_PX = 22;
const LABEL_PX = 58;
const CYCLE_PX = 30;
const FONT = "12px ui-sans-serif, system-ui, sans-serif";
const SLOTS_DRAWN_MAX = 240;
/** The opacity of blocks whose row is not the present one. */
const DIM = 0.28;

/** The page's colours, which depend on the theme. */
interface Theme { text: string; ground: string }

/** The height of a row: smaller if there are many, so that all are visible. */
function rowHeight(rows: number): number {
  return Math.max(3, Math.min(ROW_PX_MAX, Math.floor(0.85 * MATRIX_PX / Math.max(1, rows))));
}

/** The distance between two rows. */
function rowStep(rows: number): number {
  return rowHeight(rows) + (rowHeight(rows) > 12 ? GAP_PX : 1);
}

interface Run { job: number; from: number; to: number }

/** Adjacent cells of one job, as one block. */
function runs(cells: (number | null)[]): Run[] {
  const all: Run[] = [];
  cells.forEach((job, column) => {
    const last = all.at(-1);
    if (job === null) return;
    if (last && last.job === job && last.to === column) last.to++;
    else all.push({ job, from: column, to: column + 1 });
  });
  return all;
}

/** A job's block; the colour of a text on it. The stripes are of the other of black and white, so that they only add to the contrast. */
function block(
  g: CanvasRenderingContext2D, job: number, [x, y, w, h]: [number, number, number, number], opacity: number, theme: Theme,
): string {
  const text = ink(blend(rgb(colour(job)), rgb(theme.ground), opacity));
  g.globalAlpha = opacity;
  g.fillStyle = colour(job);
  g.beginPath();
  g.roundRect(x, y, w, h, Math.min(5, w / 4, h / 4));
  g.fill();
  if (stripes(job) === 0 || h < 8) return text;
  g.save();
  g.clip();
  g.strokeStyle = text === "#ffffff" ? "rgba(0,0,0,.35)" : "rgba(255,255,255,.35)";
  g.lineWidth = 3;
  for (let d = -h; d < w + h; d += 10) {
    g.beginPath();
    g.moveTo(x + d, stripes(job) === 1 ? y : y + h);
    g.lineTo(x + d + h, stripes(job) === 1 ? y + h : y);
    g.stroke();
  }
  g.restore();
  return text;
}

/** The parts that do not change from frame to frame: all rows dimmed, and the cycle. */
let still: { of: unknown[]; canvas: HTMLCanvasElement } | null = null;

function drawStill(width: number, height: number, scale: number, plan: Plan, theme: Theme): HTMLCanvasElement {
  const of = [plan, state.jobs, width, height, scale, theme.text, theme.ground];
  if (still && of.every((value, at) => still?.of[at] === value)) return still.canvas;
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [Math.round(width * scale), Math.round(height * scale)];
  still = { of, canvas };
  const g = canvas.getContext("2d");
  if (!g) return canvas;
  g.scale(scale, scale);
  const { columns, rows, turns } = plan.matrix;
  const cell = (width - LABEL_PX) / Math.max(1, columns.length);
  const every = Math.ceil(44 / cell);
  g.fillStyle = theme.text;
  g.font = FONT;
  g.textBaseline = "middle";
  g.textAlign = "center";
  columns.forEach((name, at) => at % every === 0 && g.fillText(name, LABEL_PX + (at + 0.5) * cell, HEAD_PX / 2, cell * every));
  const names = new Map(state.jobs.map((job) => [job.id, job.name]));
  rows.forEach((_, at) => drawRow(g, width, plan, at, 0, names, theme));
  cycle(g, width, HEAD_PX + rows.length * rowStep(rows.length) + 8, plan, turns, theme);
  return canvas;
}

function drawRow(
  g: CanvasRenderingContext2D, width: number, plan: Plan, at: number, light: number, names: Map<number, string>, theme: Theme,
): void {
  const { columns, rows } = plan.matrix;
  const row = rows[at];
  if (!row) return;
  const [rowPx, cell] = [rowHeight(rows.length), (width - LABEL_PX) / Math.max(1, columns.length)];
  const y = HEAD_PX + at * rowStep(rows.length);
  g.clearRect(0, y, width, rowPx);
  g.fillStyle = theme.text;
  g.textAlign = "left";
  g.textBaseline = "middle";
  g.font = `${light > 0.5 ? "600 " : ""}${FONT}`;
  if (rowPx > 10) g.fillText(`row ${row.index}`, 0, y + rowPx / 2);
  g.globalAlpha = 0.13;
  row.cells.forEach((job, c) => job === null && g.fillRect(LABEL_PX + c * cell + 1, y, Math.max(1, cell - 2), rowPx));
  for (const run of runs(row.cells)) {
    const [x, w] = [LABEL_PX + run.from * cell + 1, (run.to - run.from) * cell - 2];
    const text = block(g, run.job, [x, y, w, rowPx], DIM + (1 - DIM) * light, theme);
    g.globalAlpha = 1;
    if (w < 18 || rowPx < 11) continue;
    const label = w > 90 ? plain(`${run.job} ${names.get(run.job) ?? ""}`) : String(run.job);
    g.fillStyle = text;
    g.textAlign = "center";
    const most = Math.max(1, Math.floor(w / 7) - 1);
    g.fillText(label.length > most ? `${label.slice(0, most)}…` : label, x + w / 2, y + rowPx / 2);
  }
  g.globalAlpha = 1;
}

function draw(g: CanvasRenderingContext2D, [width, height, scale]: [number, number, number], plan: Plan, stale: boolean, theme: Theme): void {
  const { rows } = plan.matrix;
  const now = Date.now() + clockAhead;
  g.drawImage(drawStill(width, height, scale, plan, theme), 0, 0, width, height);
  if (stale) return;
  const names = new Map(state.jobs.map((job) => [job.id, job.name]));
  presence(plan, now - GLOW_MS, now).forEach((light, at) => light > 0.01 && drawRow(g, width, plan, at, light, names, theme));
  // A hand that moves faster than the eye can follow would flicker.
  const cycleMs = (plan.slot_length_ns / 1e6) * plan.matrix.turns.length;
  if (cycleMs < 250) return;
  g.fillStyle = theme.text;
  const top = HEAD_PX + rows.length * rowStep(rows.length) + 4;
  g.fillRect(LABEL_PX + phase(plan, now) * (width - LABEL_PX) - 1, top, 3, CYCLE_PX + 8);
}

/** The whole cycle from left to right, coloured by the gangs of each slot's row. */
function cycle(g: CanvasRenderingContext2D, width: number, y: number, plan: Plan, turns: number[], theme: Theme): void {
  if (turns.length === 0 || turns.length > SLOTS_DRAWN_MAX) return;
  const slot = (width - LABEL_PX) / turns.length;
  g.fillStyle = theme.text;
  g.textAlign = "left";
  g.font = FONT;
  g.fillText("cycle", 0, y + CYCLE_PX / 2);
  turns.forEach((row, k) => {
    const jobs = [...new Set(plan.matrix.rows[row]?.cells.filter((job) => job !== null) ?? [])];
    const part = CYCLE_PX / Math.max(1, jobs.length);
    jobs.forEach((job, n) => block(g, job, [LABEL_PX + k * slot + 1, y + n * part, Math.max(1, slot - 2), part], 1, theme));
  });
}

export function MatrixView({ plan, stale }: { plan: Plan; stale: boolean }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const latest = useRef({ plan, stale });
  latest.current = { plan, stale };
  const rows = plan.matrix.rows.length;
  const height = HEAD_PX + rows * rowStep(rows) + 8 + CYCLE_PX + 8;
  useEffect(() => {
    let frame = 0;
    const step = () => {
      frame = requestAnimationFrame(step);
      const c = canvas.current;
      const g = c?.getContext("2d");
      if (!c || !g) return;
      const scale = devicePixelRatio || 1;
      const [width, high] = [c.clientWidth, c.clientHeight];
      if (c.width !== Math.round(width * scale) || c.height !== Math.round(high * scale)) {
        c.width = Math.round(width * scale);
        c.height = Math.round(high * scale);
      }
      g.setTransform(scale, 0, 0, scale, 0, 0);
      g.clearRect(0, 0, width, high);
      const { color: text, backgroundColor: ground } = getComputedStyle(c);
      draw(g, [width, high, scale], latest.current.plan, latest.current.stale, { text, ground });
      window.coschedFrames = (window.coschedFrames ?? 0) + 1;
    };
    step();
    return () => cancelAnimationFrame(frame);
  }, []);
  return <canvas ref={canvas} class="matrix" style={{ height: `${height}px` }} role="img" aria-label={describe(plan)} />;
}

/** A description for users who cannot see the drawing. */
function describe(plan: Plan): string {
  const row = (cells: (number | null)[]) => runs(cells).map((run) => `job ${run.job} on ${run.to - run.from} CPUs`).join(", ");
  const text = plan.matrix.rows.map((r) => `row ${r.index}: ${row(r.cells) || "empty"}`).join("; ");
  return `Ousterhout matrix, ${plan.matrix.rows.length} rows in turn: ${text}`;
}

declare global {
  interface Window {
    /** The number of frames that were drawn, for the test. */
    coschedFrames?: number;
  }
}
