// What if: the running jobs simulated under other policies, strategies compared on a trace, and the runs so far with their reports.

import "./ask.css";
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, Refusal, send } from "./api";
import { Prediction } from "./prediction";
import { change } from "./store";
import { bytes, clock, duration, plain } from "./text";

export interface Run {
  id: string;
  kind: "whatif" | "check" | "compare";
  title: string;
  state: "waiting" | "running" | "done" | "failed" | "cancelled" | "interrupted";
  why: string;
  begun_unix_ms: number;
  ended_unix_ms?: number;
  report: boolean;
}

export interface Shown { run: Run; output: string; messages: string }

const POLICIES = ["gang-soft", "gang-strict", "local", "local+spin-block", "auto", "linux"];
const WORKLOADS = [1, 2, 3, 4, 5, 6, 7, 8].map((n) => `WL${n}`);
/** As in crates/cosched-cli/src/web/ask: the server refuses more. */
const TRACE_MAX = 8 << 20;
const LOOK_MS = 1000;

const isOpen = (run: Run) => run.state === "waiting" || run.state === "running";

function numbers(form: HTMLFormElement): (name: string) => number {
  const data = new FormData(form);
  return (name) => Number(data.get(name));
}

export function Ask() {
  const [runs, setRuns] = useState<Run[]>([]);
  const [shown, setShown] = useState<Shown | null>(null);
  const selected = useRef<string | null>(null);
  const look = async () => {
    try {
      const { runs } = await ask<{ runs: Run[] }>("GET", "/ask/runs");
      setRuns(runs);
      if (selected.current) setShown(await ask<Shown>("GET", `/ask/runs/${selected.current}`));
    } catch {
      // The page says elsewhere that nothing answers.
    }
  };
  const open = runs.some(isOpen);
  useEffect(() => {
    void look();
    if (!open) return;
    const timer = setInterval(() => document.hidden || void look(), LOOK_MS);
    return () => clearInterval(timer);
  }, [open]);
  const show = (id: string | null) => {
    selected.current = id;
    if (id === null) setShown(null);
    void look();
  };
  const start = async (spec: unknown, file?: File) => {
    try {
      const run = await send<Run>("/ask/runs", new Blob([JSON.stringify(spec), "\n", ...(file ? [file] : [])]));
      change({ refused: null });
      show(run.id);
    } catch (e) {
      if (e instanceof Refusal) change({ refused: e });
    }
  };
  const cancel = (id: string) => void ask("POST", `/ask/runs/${id}/cancel`, {}).then(look, look);
  return (
    <section aria-labelledby="ask">
      <h2 id="ask">What if</h2>
      <div class="grid halves forms"><WhatIf start={start} /><Compare start={start} /></div>
      {runs.length > 0 && <Runs runs={runs} shown={shown?.run.id ?? null} show={show} cancel={cancel} />}
      {shown && <Result shown={shown} />}
    </section>
  );
}

type Start = (spec: unknown, file?: File) => Promise<void>;

function WhatIf({ start }: { start: Start }) {
  return (
    <form onSubmit={(e) => {
      e.preventDefault();
      const number = numbers(e.currentTarget);
      const policies = new FormData(e.currentTarget).getAll("policy");
      void start({ kind: "whatif", for_s: number("for"), look_s: number("look"), policies });
    }}>
      <h3>The jobs that run now, under other policies</h3>
      <p class="muted">They are observed first, then predicted; when the time has passed you see how right that was.</p>
      <fieldset class="row"><legend>Policies</legend>
        {POLICIES.map((name) => <label key={name}><input type="checkbox" name="policy" value={name} defaultChecked /> {name}</label>)}
      </fieldset>
      <div class="row">
        <label>Predict <input name="for" type="number" min="1" max="900" defaultValue="60" required /> s</label>
        <label>Observe <input name="look" type="number" min="1" max="120" defaultValue="10" required /> s</label>
        <button type="submit">Predict</button>
        <button type="button" onClick={() => void start({ kind: "check" })} title="Of predictions whose time passed while nobody waited">Check earlier predictions</button>
      </div>
    </form>
  );
}

function Compare({ start }: { start: Start }) {
  const [source, setSource] = useState("WL3");
  const submit = (form: HTMLFormElement) => {
    const data = new FormData(form);
    const number = numbers(form);
    const file = source === "" ? (data.get("trace") as File) : undefined;
    if (file && file.size > TRACE_MAX) {
      const why = `it has ${bytes(file.size)}, and at most ${bytes(TRACE_MAX)} are taken`;
      change({ refused: new Refusal(0, "the trace is too large", why, "Compress it with gzip, take a part of it, or run cosched sim compare.") });
      return;
    }
    const load = String(data.get("load"));
    void start({
      kind: "compare",
      strategies: String(data.get("strategies")).split(",").map((name) => name.trim()).filter((name) => name !== ""),
      ...(file ? { file: file.name } : { workload: source }),
      nodes: number("nodes"), count: number("count"), seeds: number("seeds"),
      ...(load === "" ? {} : { load: Number(load) }),
    }, file);
  };
  return (
    <form onSubmit={(e) => { e.preventDefault(); submit(e.currentTarget); }}>
      <h3>Strategies on a workload or a trace</h3>
      <p class="muted">A job list (CSV) or a trace (SWF, Batsim), plain or gzip; WL1 to WL8 are generated.</p>
      <div class="row">
        <label>Jobs <select value={source} onChange={(e) => setSource(e.currentTarget.value)}>
          {WORKLOADS.map((name) => <option key={name} value={name}>{name}</option>)}
          <option value="">a trace…</option>
        </select></label>
        {source === "" && <label>Trace <input name="trace" type="file" required /></label>}
        <label>Strategies <input name="strategies" type="text" class="wide" defaultValue="GS,PB,SB,Local" required /></label>
      </div>
      <div class="row">
        <label>Nodes <input name="nodes" type="number" min="1" max="100000" defaultValue="32" required /></label>
        <label>Jobs at most <input name="count" type="number" min="1" max="100000" defaultValue="100" required /></label>
        <label>Load <input name="load" type="number" min="0.01" max="10" step="any" placeholder="as it is" /></label>
        <label>Seeds <input name="seeds" type="number" min="1" max="100" defaultValue="5" required /></label>
        <button type="submit">Compare</button>
      </div>
    </form>
  );
}

function Runs({ runs, shown, show, cancel }: { runs: Run[]; shown: string | null; show: (id: string | null) => void; cancel: (id: string) => void }) {
  return (
    <div class="scroll runs"><table>
      <thead><tr><th>Begun</th><th>Run</th><th>State</th><th class="num">Took</th><th>Report</th><th>Actions</th></tr></thead>
      <tbody>{runs.map((run) => (
        <tr key={run.id} data-run={run.kind}>
          <td>{clock(run.begun_unix_ms)}</td>
          <td><button type="button" class="link" aria-expanded={shown === run.id} onClick={() => show(shown === run.id ? null : run.id)}>{plain(run.title)}</button></td>
          <td><span class={`state ${STYLES[run.state]}`}>{run.state}</span>{run.why && <span class="why"> {plain(run.why)}</span>}</td>
          <td class="num">{run.ended_unix_ms === undefined ? "–" : duration(run.ended_unix_ms - run.begun_unix_ms)}</td>
          <td>{run.report ? <a href={`/ask/reports/${run.id}`} target="_blank" rel="noopener" aria-label={`Open the report of ${plain(run.title)}`}>Open</a> : "–"}</td>
          <td class="actions"><button type="button" disabled={!isOpen(run)} onClick={() => cancel(run.id)}>Cancel</button></td>
        </tr>
      ))}</tbody>
    </table></div>
  );
}

/** The colours of the jobs' states. */
const STYLES = { waiting: "waiting", running: "running", done: "ended", failed: "lost", cancelled: "ended", interrupted: "lost" };

function Result({ shown }: { shown: Shown }) {
  const { run, output, messages } = shown;
  return (
    <div class="result" aria-live="polite">
      <h3>{plain(run.title)}</h3>
      {run.kind === "compare" ? output && <pre>{lines(output)}</pre> : <Prediction output={output} />}
      {isOpen(run) && <p class="muted">{run.state === "waiting" ? "It waits for other runs to end." : "It is running."}</p>}
      {messages && <pre class="muted">{lines(messages)}</pre>}
    </div>
  );
}

function lines(text: string): string {
  return text.split("\n").map(plain).join("\n");
}
