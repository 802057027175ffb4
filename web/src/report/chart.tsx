// A chart with what belongs to it: legend, zoom by buttons and keys, what is pointed at in words, and the table behind it.

import { useEffect, useRef, useState } from "preact/hooks";
import { table } from "./items";
import type { Chart, Pair, Series } from "./model";
import { Plot, colour, dashes } from "./plot";
import { TableView } from "./table";
import { plain } from "../text";

/** All charts of the page. */
export const plots = new Set<Plot>();

const MARKS = ["●", "■", "▲", "◆"];
const ZOOM = 1.5;
const MOVES: Record<string, Pair> = { ArrowRight: [0.2, 0], ArrowLeft: [-0.2, 0], ArrowUp: [0, 0.2], ArrowDown: [0, -0.2] };

export function ChartView({ chart }: { chart: Chart }) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<Plot | null>(null);
  const [said, say] = useState("");
  const [hidden, hide] = useState<ReadonlySet<number>>(new Set());
  useEffect(() => {
    if (!place.current) return;
    const made = new Plot(place.current, chart, say);
    plot.current = made;
    plots.add(made);
    return () => {
      plots.delete(made);
      made.end();
    };
  }, [chart]);
  const zoom = (by: number, move?: Pair) => () => plot.current?.zoom(by, move);
  const all = () => plot.current?.reset();
  const step = (by: number) => () => plot.current?.step(by);
  const keys: Record<string, () => void> = { "+": zoom(1 / ZOOM), "-": zoom(ZOOM), "0": all, Home: all, ArrowRight: step(1), ArrowLeft: step(-1) };
  const onKey = (e: KeyboardEvent) => {
    const act = e.shiftKey && MOVES[e.key] ? zoom(1, MOVES[e.key]) : keys[e.key];
    if (!act || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    act();
  };
  const toggle = (series: number) => {
    const now = new Set(hidden);
    if (!now.delete(series)) now.add(series);
    plot.current?.show(series, !now.has(series));
    hide(now);
  };
  const single = ["rects", "clear"].includes(chart.series[0]?.shape ?? "");
  return (
    <figure>
      <figcaption><b>{plain(chart.title)}</b> {plain(chart.caption)}</figcaption>
      <div ref={place} class="plot" tabIndex={0} role="img" aria-label={`${plain(chart.title)}. Arrow keys point at the data, with Shift they move; + and - zoom, 0 shows all.`} onKeyDown={onKey} />
      <div class="tools">
        <span>{!single && chart.series.map((series, n) => <Entry key={n} series={series} shown={!hidden.has(n)} toggle={() => toggle(n)} />)}</span>
        <span class="zoom">
          <button type="button" aria-label="Zoom in" onClick={zoom(1 / ZOOM)}>+</button> <button type="button" aria-label="Zoom out" onClick={zoom(ZOOM)}>−</button> <button type="button" onClick={all}>All</button>
        </span>
      </div>
      <p class="said" aria-live="polite">{plain(said) || <span class="hint">Drag to zoom; a double click shows all; keys: ← → + − 0.</span>}</p>
      <TableView table={{ ...table(chart), summary: "The data" }} />
    </figure>
  );
}

/** An entry of the legend. */
function Entry({ series, shown, toggle }: { series: Series; shown: boolean; toggle: () => void }) {
  const [mark, line] = [MARKS[series.style % 4], dashes(series).length > 0 ? "╌" : "─"];
  const signs: Record<string, string | undefined> = { line: `${line}${mark}${line}`, marks: mark, bars: "■", lying: "■" };
  return <button class="entry" type="button" aria-pressed={shown} onClick={toggle}><span style={{ color: `var(--${colour(series)})` }} aria-hidden="true">{signs[series.shape] ?? line + line}</span> {plain(series.name)}</button>;
}
