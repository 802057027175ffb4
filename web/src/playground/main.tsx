// The playground: choose jobs and a strategy, and watch processes compute, spin, block and switch.

import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import "../app.css";
import { colour } from "../colour";
import type { Job, Picture, Request } from "./engine";
import { isHere, simulate } from "./engine";
import "./extra.css";
import { JobList } from "./jobs";
import { Timeline } from "./timeline";
import { EXAMPLES, STRATEGIES } from "./words";

interface Mix { nodes: number; quantum_ms: number; jobs: Job[] }
interface Row { strategy: string; picture: Picture }

const MPL = 5;
const CPU_PARTS = ["computing", "messages", "spinning", "switching", "interrupts", "scheduling", "idle"];

function example(at: number): Mix {
  const [, nodes, quantum_ms, jobs] = EXAMPLES[at] ?? EXAMPLES[0]!;
  return { nodes, quantum_ms, jobs };
}

function percent(part: number | undefined): string {
  return `${(100 * (part ?? 0)).toFixed(1)} %`;
}

/** When the last job ended, or that some had not. */
function end(picture: Picture): string {
  return picture.jobs.some((job) => job.finish_ms === null) ? "has not ended" : `${picture.end_ms.toFixed(1)} ms`;
}

function Results({ rows, current, choose }: { rows: Row[]; current: string; choose: (strategy: string) => void }) {
  return (
    <div class="scroll">
      <table>
        <thead>
          <tr>
            <th>Strategy</th><th class="num">All jobs ended</th>
            {CPU_PARTS.map((part) => <th key={part} class="num">{part}</th>)}
            <th class="num">switches</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ strategy, picture }) => (
            <tr key={strategy} aria-current={strategy === current}>
              <td><button class="link" onClick={() => choose(strategy)}>{strategy}</button></td>
              <td class="num">{end(picture)}</td>
              {picture.cpu.map((part, at) => <td key={at} class="num">{percent(part)}</td>)}
              <td class="num">{picture.context_switches}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Key() {
  const marks = [["computes", "computes"], ["spins", "spins for a message"], ["switches", "the CPU switches"], ["kernel", "interrupt, scheduler"],
    ["ready", "ready, without a CPU"], ["blocked", "blocked"], ["io", "does I/O"], ["turn", "a slot begins"]];
  return <ul class="key-list">{marks.map(([mark, text]) => <li key={mark}><span class={`mark ${mark}`} />{text}</li>)}</ul>;
}

function App() {
  const [mix, setMix] = useState<Mix>(example(0));
  const [strategy, setStrategy] = useState("GS");
  const [picture, setPicture] = useState<Picture | null>(null);
  const [rows, setRows] = useState<Row[]>([]);
  const [error, setError] = useState("");
  const [comparing, setComparing] = useState(false);
  const wanted = useRef(0);

  const request = (name: string): Request => ({ strategy: name, mpl: MPL, ...mix });
  const keep = (row: Row) => setRows((all) => [...all.filter((other) => other.strategy !== row.strategy), row]);

  // The rows are of other jobs then.
  useEffect(() => setRows([]), [mix]);
  useEffect(() => {
    const number = ++wanted.current;
    simulate(request(strategy)).then((found) => {
      if (number !== wanted.current) return;
      setError("");
      setPicture(found);
      keep({ strategy, picture: found });
    }, (failed: Error) => number === wanted.current && setError(failed.message));
  }, [mix, strategy]);

  const compare = async () => {
    setComparing(true);
    const number = wanted.current;
    for (const [name] of STRATEGIES) {
      // The page is drawn in between.
      await new Promise((resume) => setTimeout(resume));
      if (number !== wanted.current) break;
      await simulate(request(name)).then((found) => keep({ strategy: name, picture: found }), () => undefined);
    }
    setComparing(false);
  };

  return (
    <>
      <header><h1>cosched <span class="sub muted">playground</span></h1><span class="space" /><span class="fact muted">{isHere ? "the simulator runs in this page; nothing is sent anywhere" : "the simulator runs in `cosched web`"}</span></header>
      <main>
        <section>
          <p class="empty">Parallel programs wait for each other. Put two on the same CPUs, and it depends on the scheduler whether a process that waits finds its partner running.
            Try <b>Local</b>, then <b>GS</b>, and compare when all jobs have ended.</p>
          <div class="controls">
            <label>Jobs <select aria-label="Example" onChange={(e) => setMix(example(Number(e.currentTarget.value)))}>
              {EXAMPLES.map(([name], at) => <option key={name} value={at}>{name}</option>)}
            </select></label>
            <label>Strategy <select aria-label="Strategy" value={strategy} onChange={(e) => setStrategy(e.currentTarget.value)}>
              {STRATEGIES.map(([name]) => <option key={name}>{name}</option>)}
            </select></label>
            <label>CPUs <input type="number" aria-label="CPUs" min={1} max={16} value={mix.nodes} onChange={(e) => setMix({ ...mix, nodes: Number(e.currentTarget.value) })} /></label>
            <label>Slot <input type="number" aria-label="Slot in ms" min={1} max={1000} value={mix.quantum_ms} onChange={(e) => setMix({ ...mix, quantum_ms: Number(e.currentTarget.value) })} /> ms</label>
          </div>
          <p class="empty">{STRATEGIES.find(([name]) => name === strategy)?.[1]}</p>
          {error && <p class="failed" role="alert">{error}</p>}
          {picture && !error && <Timeline picture={picture} nodes={mix.nodes} />}
          <Key />
        </section>
        <div class="grid halves">
          <section>
            <h2>Jobs</h2>
            <JobList jobs={mix.jobs} ends={error ? [] : picture?.jobs ?? []} change={(jobs) => setMix({ ...mix, jobs })} colour={colour} />
          </section>
          <section>
            <div class="head"><h2>What became of the CPU time</h2><button onClick={compare} disabled={comparing || error !== ""}>Compare all strategies</button></div>
            <Results rows={rows} current={strategy} choose={setStrategy} />
          </section>
        </div>
      </main>
    </>
  );
}

render(<App />, document.getElementById("app")!);
