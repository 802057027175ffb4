// A chart on a canvas: uPlot has axes, lines, zoom and cursor; draw.ts draws the rest on its hooks.

import uPlot from "uplot";
import { box, draw, hue, ink } from "./draw";
import type { Item } from "./items";
import { extent, items, label, number } from "./items";
import type { Chart, Pair, Series } from "./model";
import { plain } from "../text";

const AXES = ["x", "y"] as const;
const DASHES = [[], [7, 3], [2, 3], [8, 3, 2, 3]];
const HEIGHT_PX = 340;
const NAME_MAX = 22;
const NEAR_PX = 30;

/** How dashes follow from a style, beside its colour. */
export function dashes({ style, shape }: Series): number[] {
  return shape === "rule" ? [7, 3] : DASHES[Math.floor(style / 3) % DASHES.length] ?? [];
}

/** The name of a series' colour. */
export function colour({ style, shape }: Series): string {
  return shape === "rule" ? "muted" : `c${hue(style)}`;
}

/** Ticks of a logarithmic axis. uPlot's own begin where the axis does, and have no end if that is no round number below 1. */
export function decades(low: number, high: number): number[] {
  const steps = high > low * 1e4 ? [1] : [1, 2, 5];
  const powers = Array.from({ length: Math.floor(Math.log10(high)) - Math.floor(Math.log10(low)) + 1 }, (_, n) => Math.floor(Math.log10(low)) + n);
  const round = powers.flatMap((power) => steps.map((step) => Number(`${step}e${power}`))).filter((at) => at >= low && at <= high);
  return round.length > 1 ? round : [low, Math.sqrt(low * high), high].map((at) => Number(at.toPrecision(3))).filter((at) => at >= low && at <= high);
}

function joined({ shape }: Series): boolean {
  return ["line", "curve", "steps", "rule"].includes(shape);
}

export class Plot {
  readonly items: Item[];
  readonly u: uPlot;
  private readonly hidden = new Set<number>();
  private readonly size = new ResizeObserver(() => this.fit());
  private readonly height: number;
  private picked: Item | undefined;

  constructor(private readonly at: HTMLElement, readonly chart: Chart, private readonly say: (text: string) => void) {
    this.items = items(chart);
    const rows = chart.y.names?.length;
    this.height = rows ? 90 + Math.max(3, rows) * (chart.series[0]?.shape === "lying" ? 26 : 56) : HEIGHT_PX;
    // uPlot draws lines. Without any it needs a point that is none, or it has no scales.
    const lines = chart.series.some(joined) ? chart.series : [{ name: "", style: 0, shape: "marks" as const, points: [] }];
    const data = lines.map((series, n) => {
      const own = this.items.filter((item) => joined(series) && item.series === n);
      return own.length > 0 ? [own.map((item) => item.x[0]), own.map((item) => item.y[0])] : [[1], [null]];
    });
    this.u = new uPlot({
      mode: 2, width: at.clientWidth, height: this.height, legend: { show: false }, scales: { x: this.scale("x"), y: this.scale("y") },
      axes: AXES.map((of) => this.axis(of)), series: [{}, ...lines.map((series) => this.line(series))],
      cursor: { points: { show: false }, dataIdx: () => null as unknown as number, drag: { x: true, y: true, uni: 30 }, bind: { dblclick: () => () => (this.reset(), null) } },
      hooks: { draw: [() => draw(this.u, this.shown(), this.picked, (name) => ink(at, name))], setCursor: [() => this.hover()] },
    }, [null, ...data] as unknown as uPlot.AlignedData, at);
    this.size.observe(at);
  }

  end() {
    this.size.disconnect();
    this.u.destroy();
  }

  /** The width of its place, and the colours of the present theme. */
  fit() {
    if (this.at.clientWidth !== this.u.width) this.u.setSize({ width: this.at.clientWidth, height: this.height });
    this.u.redraw();
  }

  /** Shows or hides a series. */
  show(series: number, shown: boolean) {
    if (shown) this.hidden.delete(series);
    else this.hidden.add(series);
    const line = this.u.series[series + 1];
    if (line) line.show = shown;
    this.u.redraw();
  }

  /** Shows less or more by a factor, moved by parts of what is shown. */
  zoom(by: number, move: Pair = [0, 0]) {
    this.look(AXES.map((of, n) => {
      const log = this.u.scales[of]?.distr === 3;
      const [low = 0, high = 1] = [this.u.scales[of]?.min ?? 0, this.u.scales[of]?.max ?? 1].map((value) => (log ? Math.log10(value) : value));
      const [middle, half] = [(low + high) / 2 + (move[n] ?? 0) * (high - low), ((high - low) / 2) * by];
      return [middle - half, middle + half].map((value) => (log ? 10 ** value : value)) as Pair;
    }));
  }

  reset() {
    this.look(AXES.map((of) => extent(this.chart, of, this.items)));
  }

  /** Points at the next item, or the one before. */
  step(by: number) {
    const shown = this.shown();
    const now = this.picked ? shown.indexOf(this.picked) : by > 0 ? -1 : 0;
    this.pick(shown[(now + by + shown.length) % shown.length]);
  }

  private look(to: Pair[]) {
    this.u.batch(() => to.forEach(([min, max], n) => this.u.setScale(AXES[n] ?? "x", { min, max })));
  }

  private shown(): Item[] {
    return this.items.filter((item) => !this.hidden.has(item.series));
  }

  private scale(of: "x" | "y"): uPlot.Scale {
    const whole = extent(this.chart, of, this.items);
    return { time: false, distr: this.isLog(of) ? 3 : 1, dir: of === "y" && this.chart.series[0]?.shape === "lying" ? -1 : 1, range: () => whole };
  }

  /** Within a decade a logarithmic axis has few ticks. */
  private isLog(of: "x" | "y"): boolean {
    const [low, high] = extent(this.chart, of, this.items);
    return this.chart[of].log === true && high > low * 10;
  }

  private axis(of: "x" | "y"): uPlot.Axis {
    const { names } = this.chart[of];
    const lines = { stroke: () => ink(this.at, "line"), width: 1 };
    const side: uPlot.Axis = of === "x" ? {} : { size: (_, values) => Math.max(36, 26 + 7 * Math.max(...(values ?? []).map((text) => text.length))) };
    const axis: uPlot.Axis = {
      ...side, label: plain(label(this.chart[of])), labelSize: 24, stroke: () => ink(this.at, "text"), grid: lines, ticks: lines,
      values: (_, splits) => splits.map((value) => (value === null ? "" : number(value))),
    };
    if (this.isLog(of)) return { ...axis, splits: (_u, _axis, low, high) => decades(low, high), filter: (_, splits) => splits };
    return names ? { ...axis, grid: { show: false }, ...this.named(of, names) } : axis;
  }

  /** Names in the middle of their places: turned or left out where there is no room. */
  private named(of: "x" | "y", names: string[]): uPlot.Axis {
    const short = names.map((name) => (name.length > NAME_MAX ? `${plain(name).slice(0, NAME_MAX - 1)}…` : plain(name)));
    const longest = Math.max(...short.map((name) => name.length)) * 7 + 10;
    const room = this.at.clientWidth - 80;
    const every = of === "x" ? Math.ceil((names.length * 20) / room) : 1;
    return {
      ...(of === "x" && longest * names.length > room ? { rotate: -45, size: longest * 0.7 + 32 } : {}),
      splits: ({ scales }) => names.map((_, place) => place + 0.5).filter((at) => at % every < 1 && at >= (scales[of]?.min ?? 0) && at <= (scales[of]?.max ?? 0)),
      values: (_, splits) => splits.map((at) => short[Math.floor(at)] ?? ""),
    };
  }

  private line(series: Series): uPlot.Series {
    return {
      facets: AXES.map((scale) => ({ scale, auto: true })), points: { show: false }, width: series.shape === "rule" ? 1 : 2, dash: dashes(series), stroke: () => ink(this.at, colour(series)),
      paths: series.shape === "steps" ? uPlot.paths.stepped?.({ align: 1 }) : uPlot.paths.linear?.(),
    } as uPlot.Series;
  }

  /** Points at what is under the cursor, or near. */
  private hover() {
    const { left = -1, top = -1 } = this.u.cursor;
    if (left < 0) return;
    const [px, py] = [this.u.bbox.left + left * devicePixelRatio, this.u.bbox.top + top * devicePixelRatio];
    let [best, nearest]: [Item | undefined, number] = [undefined, NEAR_PX * devicePixelRatio];
    for (const item of this.shown()) {
      const [x, y, width, height] = box(this.u, item);
      const away = Math.hypot(Math.max(x - px, 0, px - x - width), Math.max(y - py, 0, py - y - height));
      if (away < nearest || away === 0) [best, nearest] = [item, away];
    }
    this.pick(best);
  }

  private pick(item: Item | undefined) {
    if (item === this.picked) return;
    this.picked = item;
    this.say(item?.text ?? "");
    this.u.redraw(false);
  }
}
