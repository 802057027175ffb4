// The picture: a lane for each CPU, then one for each process; time from left to right.

import { colour, ink, rgb } from "../colour";
import type { Picture, Slice } from "./engine";

export const LANE_PX = 26;
const PROCESS_PX = 15;
const HEAD_PX = 22;
const GROUP_PX = 20;
export const LABEL_PX = 92;
const FONT = "12px ui-sans-serif, system-ui, sans-serif";
const [SPIN, SWITCH, IO, BLOCKED] = [2, 3, 6, 7];

export interface Lanes { cpus: Slice[][]; processes: { job: number; task: number; slices: Slice[] }[] }
export interface View { from: number; span: number }

/** Sorted into lanes; those of a lane are in order. */
export function lanes(picture: Picture, nodes: number): Lanes {
  const cpus: Slice[][] = Array.from({ length: nodes }, () => []);
  const processes = picture.jobs.flatMap((of, job) => of.nodes.map((_, task) => ({ job, task, slices: [] as Slice[] })));
  const at = new Map(processes.map((process) => [`${process.job} ${process.task}`, process.slices]));
  for (const slice of picture.slices) {
    if (slice[3] < IO) cpus[slice[0]]?.push(slice);
    if (slice[4] >= 0 && slice[3] !== SWITCH) at.get(`${slice[4]} ${slice[5]}`)?.push(slice);
  }
  return { cpus, processes };
}

export function height(of: Lanes): number {
  return HEAD_PX + of.cpus.length * LANE_PX + GROUP_PX + of.processes.length * PROCESS_PX + 6;
}

/** The first of a lane that ends after a time. */
export function after(slices: Slice[], time: number): number {
  let [low, high] = [0, slices.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((slices[middle]?.[2] ?? 0) > time) high = middle;
    else low = middle + 1;
  }
  return low;
}

function hatch(g: CanvasRenderingContext2D, job: number): CanvasPattern | string {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const t = tile.getContext("2d");
  if (!t) return colour(job);
  t.globalAlpha = 0.3;
  t.fillStyle = colour(job);
  t.fillRect(0, 0, 8, 8);
  t.globalAlpha = 1;
  t.strokeStyle = colour(job);
  t.lineWidth = 2.2;
  for (const d of [-8, 0, 8]) {
    t.moveTo(d, 8);
    t.lineTo(d + 8, 0);
  }
  t.stroke();
  return g.createPattern(tile, "repeat") ?? colour(job);
}

/** Solid computes, hatched spins, dark switches, a frame does I/O, a dotted line is blocked. */
function slice(g: CanvasRenderingContext2D, [, , , activity, job]: Slice, x: number, y: number, w: number, h: number, text: string): void {
  if (activity === BLOCKED || activity === IO) {
    g.strokeStyle = g.fillStyle = colour(job);
    g.setLineDash(activity === BLOCKED ? [2, 3] : []);
    if (activity === BLOCKED) g.strokeRect(x, y + h / 2, w, 0);
    else g.strokeRect(x + 0.5, y + 3.5, Math.max(0.5, w - 1), h - 7);
    g.setLineDash([]);
    return;
  }
  g.fillStyle = activity === SWITCH ? text : activity > SWITCH || job < 0 ? "#808a94" : activity === SPIN ? hatch(g, job) : colour(job);
  g.fillRect(x, y, Math.max(w, 0.6), h);
  if (activity === 0 && w > 26 && h > 16) {
    g.fillStyle = ink(rgb(colour(job)));
    g.fillText(`${job + 1}`, x + w / 2 - 3, y + h / 2);
  }
}

function lane(g: CanvasRenderingContext2D, slices: Slice[], view: View, width: number, y: number, h: number, text: string): void {
  const scale = (width - LABEL_PX) / view.span;
  let drawn = -1;
  for (let at = after(slices, view.from); at < slices.length; at++) {
    const one = slices[at];
    if (!one || one[1] >= view.from + view.span) break;
    const x = LABEL_PX + Math.max(0, one[1] - view.from) * scale;
    const end = LABEL_PX + Math.min(view.span, one[2] - view.from) * scale;
    // Many in a pixel: the last one before it is seen is enough.
    if (end < drawn + 0.5) continue;
    slice(g, one, x, y, end - x, h, text);
    drawn = end;
  }
}

/** A step of 1, 2 or 5 times a power of ten, for about this many marks. */
function step(span: number, marks: number): number {
  const power = 10 ** Math.floor(Math.log10(span / marks));
  return power * ([1, 2, 5].find((factor) => power * factor * marks >= span) ?? 10);
}

export function draw(g: CanvasRenderingContext2D, width: number, of: Lanes, picture: Picture, view: View, cursor: number, text: string): void {
  const scale = (width - LABEL_PX) / view.span;
  g.font = FONT;
  g.textBaseline = "middle";
  g.fillStyle = text;
  const every = step(view.span, 8);
  for (let time = Math.ceil(view.from / every) * every; time < view.from + view.span; time += every) {
    const x = LABEL_PX + (time - view.from) * scale;
    g.globalAlpha = 0.18;
    g.fillRect(x, HEAD_PX - 4, 1, height(of));
    g.globalAlpha = 1;
    g.fillText(`${+time.toFixed(3)} ms`, x + 2, HEAD_PX / 2 - 2);
  }
  of.cpus.forEach((slices, cpu) => {
    const y = HEAD_PX + cpu * LANE_PX;
    g.fillStyle = text;
    g.fillText(`CPU ${cpu}`, 0, y + LANE_PX / 2);
    lane(g, slices, view, width, y + 2, LANE_PX - 4, text);
  });
  // Where a row's turn begins.
  g.fillStyle = text;
  for (const [time] of picture.rows) {
    if (time < view.from || time > view.from + view.span) continue;
    g.fillRect(LABEL_PX + (time - view.from) * scale, HEAD_PX - 3, 1.5, of.cpus.length * LANE_PX + 6);
  }
  const top = HEAD_PX + of.cpus.length * LANE_PX + GROUP_PX;
  of.processes.forEach(({ job, task, slices }, at) => {
    const y = top + at * PROCESS_PX;
    const { start_ms, finish_ms } = picture.jobs[job] ?? { start_ms: null, finish_ms: null };
    const [from, to] = [start_ms ?? 0, finish_ms ?? picture.end_ms].map((time) => Math.min(Math.max(time - view.from, 0), view.span));
    g.fillStyle = text;
    if (task === 0) g.fillText(`job ${job + 1}`, 0, y + PROCESS_PX / 2);
    g.fillText(`.${task}`, 52, y + PROCESS_PX / 2);
    // While it lives: a thin line, for when it is ready and has no CPU.
    g.globalAlpha = 0.4;
    g.fillRect(LABEL_PX + (from ?? 0) * scale, y + PROCESS_PX / 2, ((to ?? 0) - (from ?? 0)) * scale, 1);
    g.globalAlpha = 1;
    lane(g, slices, view, width, y + 2, PROCESS_PX - 3, text);
  });
  if (cursor >= view.from && cursor <= view.from + view.span) {
    g.fillStyle = text;
    g.fillRect(LABEL_PX + (cursor - view.from) * scale - 1, HEAD_PX - 6, 2, height(of));
  }
}
