// A chart's data as what is drawn, what is said of it, and what is listed.

import type { Axis, Chart, Pair, Shape, Table } from "./model";

/** A point (of no size) or a rectangle. */
export interface Item { series: number; style: number; shape: Shape; x: Pair; y: Pair; half: number; text: string }

/** A bar this many times higher than the median is cut off. */
const CUT = 6;
const BAR_HALF = 0.35;

export function number(value: number): string {
  return String(Number(value.toPrecision(6)));
}

/** An axis' title with its unit. */
export function label(axis: Axis): string {
  return axis.unit ? `${axis.title} in ${axis.unit}` : axis.title;
}

function value(axis: Axis, at: number | null | undefined): string {
  return at === null || at === undefined ? "–" : axis.names?.[Math.floor(at)] ?? number(at);
}

export function items({ x, y, series }: Chart): Item[] {
  const ends = new Map<number, number>();
  const stacked = (place: number, length: number): Pair => {
    const from = ends.get(place) ?? 0;
    ends.set(place, from + length);
    return [from, from + length];
  };
  const wide = (place: number): Pair => [place - BAR_HALF, place + BAR_HALF];
  return series.flatMap(({ name, style, shape, points }, n) => points.flatMap((point) => {
    const { x: at, y: of, ci95: half = 0, end } = point;
    if (at === null || of === null || (x.log && at <= 0) || (y.log && of <= 0)) return [];
    const said = [x, y].map((axis, k) => `${axis.title} ${value(axis, k ? of : at)}${end ? ` to ${value(axis, end[k])}` : ""} ${axis.unit}`.trimEnd());
    const text = `${[name, point.note].filter(Boolean).join(", ")}: ${said.join(", ")}${half ? ` ± ${number(half)}` : ""}`;
    const [across, up]: [Pair, Pair] = shape === "bars" ? [wide(at), stacked(at, of)] : shape === "lying" ? [stacked(of, at), wide(of)] : [[at, end?.[0] ?? at], [of, end?.[1] ?? of]];
    return [{ series: n, style, shape, x: across, y: up, half, text }];
  }));
}

/** What an axis shows at first. */
export function extent(chart: Chart, of: "x" | "y", all: Item[]): Pair {
  const axis = chart[of];
  if (axis.names) return [0, axis.names.length];
  const values = all.flatMap((item) => (of === "y" ? [...item.y, item.y[1] + Math.min(item.half, item.y[1])] : item.x));
  const low = values.reduce((a, b) => Math.min(a, b), Infinity);
  let high = values.reduce((a, b) => Math.max(a, b), -Infinity);
  if (!(low <= high)) return axis.log ? [1, 10] : [0, 1];
  if (axis.log) return [low / 1.05, Math.max(high, low * 2) * 1.1];
  if (axis.cut) high = uncut(all, high);
  const room = all[0]?.x[0] === all[0]?.x[1] || all[0]?.shape === "bars" ? (high - Math.min(low, 0)) * 0.05 : 0;
  const from = of === "x" && low > high / 3 ? low - room : Math.min(low, 0);
  return [from, high + room > from ? high + room : from + 1];
}

/** The uppermost parts of bars, which end where the whole ends. */
export function tops(all: Item[]): Item[] {
  return [...new Map(all.map((item) => [item.x[0], item])).values()];
}

/** The highest end that is not cut off, with its interval and room for its number. */
function uncut(all: Item[], high: number): number {
  const ends = tops(all).sort((a, b) => a.y[1] - b.y[1]);
  const limit = (ends[(ends.length - 1) >> 1]?.y[1] ?? high) * CUT;
  return ends.filter((item) => item.y[1] <= limit).reduce((most, { y, half }) => Math.max(most, y[1] + Math.min(half, y[1])), 0) * 1.08;
}

/** The data behind the picture: a row for each name where it has names, else for each point. */
export function table({ x, y, series }: Chart): Table {
  const points = series.flatMap((one) => one.points.map((point) => ({ series: one.name, ...point })));
  const rects = points.some((point) => point.end);
  const names = rects ? undefined : x.names ?? y.names;
  if (names) {
    const cell = (place: number) => series.map((one) => {
      const point = one.points.find((point) => Math.floor((x.names ? point.x : point.y) ?? -1) === place);
      return point ? `${x.names ? value(y, point.y) : value(x, point.x)}${point.ci95 === undefined ? "" : ` ± ${number(point.ci95)}`}` : "–";
    });
    const unit = (x.names ? y : x).unit;
    return { titles: [[label(x.names ? x : y), true], ...series.map((one): [string, boolean] => [unit ? `${one.name}, ${unit}` : one.name, false])], rows: names.map((name, place) => [name, ...cell(place)]) };
  }
  const columns: [title: string, isWord: boolean, of: (point: (typeof points)[number]) => string][] = [
    ["", true, (point) => point.series],
    [label(x), false, (point) => value(x, point.x)],
    [label(y), false, (point) => value(y, point.y)],
  ];
  if (rects) columns.push(["to", false, (point) => value(x, point.end?.[0])], ["to", false, (point) => value(y, point.end?.[1])]);
  if (points.some((point) => point.ci95 !== undefined)) columns.push(["±", false, (point) => (point.ci95 === undefined ? "–" : number(point.ci95))]);
  if (points.some((point) => point.note)) columns.push(["what", true, (point) => point.note ?? ""]);
  return { titles: columns.map(([title, isWord]) => [title, isWord]), rows: points.map((point) => columns.map(([, , of]) => of(point))) };
}
