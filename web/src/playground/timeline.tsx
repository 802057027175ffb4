// The picture with its time: play, move, zoom, by mouse and by keys; and the same in words.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { View } from "./draw";
import { LABEL_PX, after, draw, height, lanes } from "./draw";
import type { Picture } from "./engine";
import { ACTIVITIES } from "./words";

const SPEEDS_MS: [text: string, per_second: number][] = [["slow", 2], ["middle", 10], ["fast", 50]];
const SPAN_MS = 30;
const SPAN_MS_MIN = 0.2;

interface Place { time: number; span: number; playing: boolean }

/** The window of time: the cursor stays in its first third. */
function viewOf({ time, span }: Place, end: number): View {
  const length = Math.min(span, Math.max(end, SPAN_MS_MIN));
  return { from: Math.min(Math.max(time - length / 3, 0), Math.max(end - length, 0)), span: length };
}

export function Timeline({ picture, nodes }: { picture: Picture; nodes: number }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [place, setPlace] = useState<Place>({ time: 0, span: SPAN_MS, playing: false });
  const [speed, setSpeed] = useState(1);
  const of = useMemo(() => lanes(picture, nodes), [picture, nodes]);
  const move = (by: number) => setPlace((p) => ({ ...p, time: Math.min(Math.max(p.time + by, 0), picture.end_ms) }));
  const zoom = (by: number) => setPlace((p) => ({ ...p, span: Math.min(Math.max(p.span * by, SPAN_MS_MIN), picture.end_ms) }));
  const play = () => setPlace((p) => ({ ...p, playing: !p.playing, time: p.time >= picture.end_ms ? 0 : p.time }));

  useEffect(() => setPlace((p) => ({ ...p, time: Math.min(p.time, picture.end_ms) })), [picture]);
  useEffect(() => {
    if (!place.playing) return;
    let [frame, last] = [0, performance.now()];
    const next = (now: number) => {
      const by = ((now - last) / 1000) * (SPEEDS_MS[speed]?.[1] ?? 10);
      last = now;
      setPlace((p) => (p.time + by >= picture.end_ms ? { ...p, time: picture.end_ms, playing: false } : { ...p, time: p.time + by }));
      frame = requestAnimationFrame(next);
    };
    frame = requestAnimationFrame(next);
    return () => cancelAnimationFrame(frame);
  }, [place.playing, speed, picture]);

  const view = viewOf(place, picture.end_ms);
  const paint = () => {
    const c = canvas.current;
    const g = c?.getContext("2d");
    if (!c || !g) return;
    const scale = devicePixelRatio || 1;
    [c.width, c.height] = [Math.round(c.clientWidth * scale), Math.round(c.clientHeight * scale)];
    g.setTransform(scale, 0, 0, scale, 0, 0);
    draw(g, c.clientWidth, of, picture, view, place.time, getComputedStyle(c).color);
  };
  useEffect(paint);
  useEffect(() => {
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const again = () => setPlace((p) => ({ ...p }));
    addEventListener("resize", again);
    scheme.addEventListener("change", again);
    return () => {
      removeEventListener("resize", again);
      scheme.removeEventListener("change", again);
    };
  }, []);

  const keys: Record<string, () => void> = {
    " ": play, ArrowLeft: () => move(-view.span / 30), ArrowRight: () => move(view.span / 30), "+": () => zoom(1 / 1.5), "-": () => zoom(1.5),
    Home: () => move(-Infinity), End: () => move(Infinity),
  };
  const onKey = (e: KeyboardEvent) => {
    const act = keys[e.key];
    if (!act) return;
    e.preventDefault();
    act();
  };
  const at = (e: PointerEvent) => {
    const c = canvas.current;
    if (!c || e.buttons !== 1) return;
    const part = (e.offsetX - LABEL_PX) / (c.clientWidth - LABEL_PX);
    setPlace((p) => ({ ...p, playing: false, time: Math.min(Math.max(view.from + part * view.span, 0), picture.end_ms) }));
  };
  const wheel = (e: WheelEvent) => {
    if (!e.ctrlKey) return;
    e.preventDefault();
    zoom(e.deltaY > 0 ? 1.2 : 1 / 1.2);
  };
  const words = useMemo(() => describe(of.cpus, place.time), [of, place.time]);
  return (
    <>
      <div class="controls">
        <button onClick={play}>{place.playing ? "Pause" : "Play"}</button>
        <label>Speed <select aria-label="Speed" value={speed} onChange={(e) => setSpeed(Number(e.currentTarget.value))}>
          {SPEEDS_MS.map(([text, ms], n) => <option key={text} value={n}>{`${text} (${ms} ms a second)`}</option>)}
        </select></label>
        <button aria-label="Zoom in" onClick={() => zoom(1 / 1.5)}>+</button>
        <button aria-label="Zoom out" onClick={() => zoom(1.5)}>−</button>
        <button onClick={() => setPlace({ ...place, span: picture.end_ms })}>All</button>
        <input type="range" aria-label="Time" style={{ flex: 1, minWidth: "8em" }} min={0} max={picture.end_ms} step="any" value={place.time}
          onInput={(e) => setPlace({ ...place, playing: false, time: Number(e.currentTarget.value) })} />
        <span class="fact muted">space, ← →, + −, Home, End</span>
      </div>
      <canvas ref={canvas} class="picture" style={{ height: `${height(of)}px` }} tabIndex={0} role="img" aria-label={words} onKeyDown={onKey}
        onPointerDown={at} onPointerMove={at} onWheel={wheel} />
      <p class="said" aria-live={place.playing ? "off" : "polite"}>{words}</p>
      {picture.is_cut && <p class="failed">Only the first 400,000 pieces are drawn.</p>}
    </>
  );
}

/** What each CPU does at a time. */
function describe(cpus: Picture["slices"][], time: number): string {
  const said = cpus.map((slices, cpu) => {
    const one = slices[after(slices, time)];
    if (!one || one[1] > time) return `CPU ${cpu} is idle`;
    const who = one[4] >= 0 ? `job ${one[4] + 1}.${one[5]}` : "nobody";
    return one[3] === 0 || one[3] === 2 ? `CPU ${cpu}: ${who} ${ACTIVITIES[one[3]]}` : `CPU ${cpu} ${ACTIVITIES[one[3]]}`;
  });
  return `At ${time.toFixed(2)} ms: ${said.join(", ")}.`;
}
