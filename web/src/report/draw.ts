// What uPlot does not draw: rectangles, marks, intervals, and the numbers of bars.

import type uPlot from "uplot";
import type { Item } from "./items";
import { tops } from "./items";

/** A colour of the style sheet as canvases understand it, for light or dark. */
export function ink(at: HTMLElement, name: string): string {
  at.style.color = `var(--${name})`;
  const colour = getComputedStyle(at).color;
  at.style.color = "";
  return colour;
}

/** Left, top, width and height of an item on the canvas. */
export function box(u: uPlot, { x, y }: Item): [number, number, number, number] {
  const [left = 0, right = 0] = x.map((value) => u.valToPos(value, "x", true));
  const [bottom = 0, top = 0] = y.map((value) => u.valToPos(value, "y", true));
  return [left, Math.min(top, bottom), right - left, Math.abs(bottom - top)];
}

/** Draws items, with a frame around the one that is pointed at. */
export function draw(u: uPlot, items: Item[], picked: Item | undefined, colour: (name: string) => string) {
  const { ctx: g, bbox } = u;
  const colours = Array.from({ length: 11 }, (_, n) => colour(`c${n}`));
  const text = colour("text");
  g.save();
  g.beginPath();
  g.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  g.clip();
  g.setLineDash([]);
  g.lineWidth = devicePixelRatio;
  for (const item of items) {
    g.fillStyle = g.strokeStyle = colours[hue(item.style)] ?? "";
    shape(g, item, box(u, item));
    if (item.half > 0) interval(g, u, item, text);
  }
  if (items[0]?.shape === "bars") numbers(g, u, tops(items), text, colour("card"));
  if (picked) {
    const [left, top, width, height] = box(u, picked);
    g.strokeStyle = text;
    g.lineWidth = 2 * devicePixelRatio;
    g.strokeRect(left - 7, top - 7, width + 14, height + 14);
  }
  g.restore();
}

/** The number of a style's colour. */
export function hue(style: number): number {
  return style === 10 ? 10 : style % 10;
}

function shape(g: CanvasRenderingContext2D, { style, shape }: Item, [left, top, width, height]: [number, number, number, number]) {
  if (shape === "line" || shape === "marks") g.fill(mark(style, left, top, 4.5 * devicePixelRatio));
  if (width === 0 && height === 0) return;
  g.globalAlpha = shape === "clear" ? 0.25 : 1;
  g.fillRect(left, top, Math.max(width, 0.5), Math.max(height, 0.5));
  g.globalAlpha = 1;
  if (shape === "rects" || shape === "clear") g.strokeRect(left, top, width, height);
}

/** A disc, a square, a triangle or a diamond. */
function mark(style: number, x: number, y: number, r: number): Path2D {
  const path = new Path2D();
  const corners = [[], [[-1, -1], [1, -1], [1, 1], [-1, 1]], [[0, -1.1], [1.1, 0.9], [-1.1, 0.9]], [[0, -1.2], [1.2, 0], [0, 1.2], [-1.2, 0]]][style % 4] ?? [];
  for (const [dx = 0, dy = 0] of corners) path.lineTo(x + dx * r, y + dy * r);
  if (corners.length === 0) path.arc(x, y, r, 0, 2 * Math.PI);
  path.closePath();
  return path;
}

function interval(g: CanvasRenderingContext2D, u: uPlot, { shape, x, y, half }: Item, text: string) {
  if (shape === "bars") g.strokeStyle = text;
  const middle = u.valToPos((x[0] + x[1]) / 2, "x", true);
  const [low = 0, high = 0] = [y[1] - half, y[1] + half].map((value) => u.valToPos(value, "y", true));
  const cap = 3 * devicePixelRatio;
  g.stroke(new Path2D(`M${middle} ${low}V${high}M${middle - cap} ${low}h${2 * cap}M${middle - cap} ${high}h${2 * cap}`));
}

/** The height of each bar above it, or at the top if it is cut off there. */
function numbers(g: CanvasRenderingContext2D, u: uPlot, items: Item[], text: string, ground: string) {
  if (u.valToPos(1, "x") - u.valToPos(0, "x") < 34) return;
  g.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
  [g.textAlign, g.fillStyle, g.strokeStyle, g.lineWidth] = ["center", text, ground, 3 * devicePixelRatio];
  for (const { x, y, half } of items) {
    const said = `${y[1] > (u.scales.y?.max ?? Infinity) ? "↑ " : ""}${Number(y[1].toPrecision(3))}`;
    const above = u.valToPos(y[1] + half, "y", true) - 5 * devicePixelRatio;
    const at: [number, number] = [u.valToPos((x[0] + x[1]) / 2, "x", true), Math.max(above, u.bbox.top + 12 * devicePixelRatio)];
    g.strokeText(said, ...at);
    g.fillText(said, ...at);
  }
}
