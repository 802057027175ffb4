// The Ousterhout matrix as it turns, and its cycle: drawn from the plan and the clock, so it is steady at any slot length.

import { useEffect, useRef } from "preact/hooks";
import type { Plan } from "./api";
import { clockAhead } from "./api";
import { phase, presence } from "./clockwork";
import { colour, ink, stripes } from "./colour";
import { state } from "./store";
import { plain } from "./text";

/** A row stays bright for as long as an eye needs; shorter slots glow by their part of the time. */
const GLOW_MS = 80;
const ROW_PX_MAX = 34;
const MATRIX_PX = 900;
const GAP_PX = 4;
const HEAD_PX = 22;
const LABEL_PX = 58;
const CYCLE_PX = 30;
const SLOTS_DRAWN_MAX = 240;

/** The height of a row: less of many, so that all are seen. */
function rowHeight(rows: number): number {
  return Math.max(4, Math.min(ROW_PX_MAX, Math.floor(MATRIX_PX / Math.max(1, rows)) - GAP_PX));
}

interface Run { job: number; from: number; to: number }

/** Neighbouring cells of one job, as one block. */
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

function block(g: CanvasRenderingContext2D, job: number, x: number, y: number, w: number, h: number): void {
  g.fillStyle = colour(job);
  g.beginPath();
  g.roundRect(x, y, w, h, Math.min(5, w / 4, h / 4));
  g.fill();
  if (stripes(job) === 0) return;
  g.save();
  g.clip();
  g.strokeStyle = "rgba(255,255,255,.35)";
  g.lineWidth = 3;
  for (let d = -h; d < w + h; d += 10) {
    g.beginPath();
    g.moveTo(x + d, stripes(job) === 1 ? y : y + h);
    g.lineTo(x + d + h, stripes(job) === 1 ? y + h : y);
    g.stroke();
  }
  g.restore();
}

function draw(g: CanvasRenderingContext2D, width: number, plan: Plan, stale: boolean, ink2: string): void {
  const { columns, rows, turns } = plan.matrix;
  const now = Date.now() + clockAhead;
  const bright = stale ? rows.map(() => 0) : presence(plan, now - GLOW_MS, now);
  const names = new Map(state.jobs.map((job) => [job.id, job.name]));
  const cell = (width - LABEL_PX) / Math.max(1, columns.length);
  g.font = "12px ui-sans-serif, system-ui, sans-serif";
  g.textBaseline = "middle";
  const every = Math.ceil(44 / cell);
  g.fillStyle = ink2;
  g.textAlign = "center";
  columns.forEach((name, at) => at % every === 0 && g.fillText(name, LABEL_PX + (at + 0.5) * cell, HEAD_PX / 2, cell * every));
  const rowPx = rowHeight(rows.length);
  rows.forEach((row, at) => {
    const y = HEAD_PX + at * (rowPx + GAP_PX);
    const light = bright[at] ?? 0;
    g.globalAlpha = 1;
    g.fillStyle = ink2;
    g.textAlign = "left";
    g.font = `${light > 0.5 ? "600 " : ""}12px ui-sans-serif, system-ui, sans-serif`;
    if (rowPx > 10) g.fillText(`row ${row.index}`, 0, y + rowPx / 2);
    g.globalAlpha = 0.13;
    row.cells.forEach((job, c) => job === null && g.fillRect(LABEL_PX + c * cell + 1, y, Math.max(1, cell - 2), rowPx));
    for (const run of runs(row.cells)) {
      const [x, w] = [LABEL_PX + run.from * cell + 1, (run.to - run.from) * cell - 2];
      g.globalAlpha = 0.28 + 0.72 * light;
      block(g, run.job, x, y, w, rowPx);
      if (w < 18 || rowPx < 11) continue;
      const text = w > 90 ? plain(`${run.job} ${names.get(run.job) ?? ""}`) : String(run.job);
      // A dim block is near the ground's colour: the text is then the ground's.
      g.globalAlpha = 1;
      g.fillStyle = light > 0.35 ? ink(run.job) : ink2;
      g.textAlign = "center";
      g.fillText(text.length > w / 7 ? `${text.slice(0, Math.max(1, Math.floor(w / 7) - 1))}…` : text, x + w / 2, y + rowPx / 2);
    }
    g.globalAlpha = 1;
  });
  cycle(g, width, HEAD_PX + rows.length * (rowPx + GAP_PX) + 8, plan, stale ? null : phase(plan, now), turns, ink2);
}

/** The cycle once from left to right, coloured by the gangs of each slot's row, with a hand that shows the present. */
function cycle(
  g: CanvasRenderingContext2D, width: number, y: number, plan: Plan, at: number | null, turns: number[], ink2: string,
): void {
  if (turns.length === 0) return;
  const wide = width - LABEL_PX;
  const slot = wide / turns.length;
  g.fillStyle = ink2;
  g.textAlign = "left";
  g.font = "12px ui-sans-serif, system-ui, sans-serif";
  g.fillText("cycle", 0, y + CYCLE_PX / 2);
  if (turns.length <= SLOTS_DRAWN_MAX) {
    turns.forEach((row, k) => {
      const jobs = [...new Set(plan.matrix.rows[row]?.cells.filter((job) => job !== null) ?? [])];
      const part = CYCLE_PX / Math.max(1, jobs.length);
      jobs.forEach((job, n) => block(g, job, LABEL_PX + k * slot + 1, y + n * part, Math.max(1, slot - 2), part));
    });
  }
  // A hand that is faster than the eye would flicker.
  const cycleMs = (plan.slot_length_ns / 1e6) * turns.length;
  if (at === null || cycleMs < 250) return;
  g.fillStyle = ink2;
  g.fillRect(LABEL_PX + at * wide - 1, y - 4, 3, CYCLE_PX + 8);
}

export function MatrixView({ plan, stale }: { plan: Plan; stale: boolean }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const latest = useRef({ plan, stale });
  latest.current = { plan, stale };
  const rows = plan.matrix.rows.length;
  const height = HEAD_PX + rows * (rowHeight(rows) + GAP_PX) + 8 + CYCLE_PX + 8;
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
      draw(g, width, latest.current.plan, latest.current.stale, getComputedStyle(c).color);
      window.coschedFrames = (window.coschedFrames ?? 0) + 1;
    };
    step();
    return () => cancelAnimationFrame(frame);
  }, []);
  return <canvas ref={canvas} class="matrix" style={{ height: `${height}px` }} role="img" aria-label={describe(plan)} />;
}

/** The same for who does not see it. */
function describe(plan: Plan): string {
  const row = (cells: (number | null)[]) => runs(cells).map((run) => `job ${run.job} on ${run.to - run.from} CPUs`).join(", ");
  const text = plan.matrix.rows.map((r) => `row ${r.index}: ${row(r.cells) || "empty"}`).join("; ");
  return `Ousterhout matrix, ${plan.matrix.rows.length} rows in turn: ${text}`;
}

declare global {
  interface Window {
    /** Frames that were drawn, for the test. */
    coschedFrames?: number;
  }
}
