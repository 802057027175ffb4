// The page of `cosched web`.

import "./app.css";
import { render } from "preact";
import { useEffect, useReducer, useRef, useState } from "preact/hooks";
import type { Job, Status } from "./api";
import { now, takeToken } from "./api";
import { Ask } from "./ask";
import { Jobs } from "./jobs";
import { MatrixView } from "./matrix";
import { Cpus, Events, Hour, Nodes, Problems, Queues } from "./panels";
import { act, change, start, state } from "./store";
import { duration, plain } from "./text";

const GRACE_MS = 5000;
const THEME = "cosched-theme";

function App() {
  const [, again] = useReducer((count: number, _: void) => count + 1, 0);
  const [victim, setVictim] = useState<Job | null>(null);
  useEffect(() => start(() => again()), []);
  const { status, plan, away } = state;
  return (
    <>
      <Top status={status} />
      <main>
        {away && <Banner what={away.what} why={away.why} hint={away.hint} />}
        {state.refused && <Banner what={state.refused.what} why={state.refused.why} hint={state.refused.hint} close={() => change({ refused: null })} />}
        {status ? (
          <>
            <Problems problems={state.problems} />
            <div class="grid">
              <section class="wide" aria-labelledby="matrix">
                <h2 id="matrix">Matrix {plan && <span class="muted sub">{turning(plan.matrix.rows.length, plan.slot_length_ns / 1e6, plan.sharing)}</span>}</h2>
                {plan && plan.matrix.rows.length > 0 ? <MatrixView plan={plan} stale={away !== null} />
                  : <p class="empty">No gang has slots now: jobs under other policies are scheduled by Linux, and gangs have rows while there are any.</p>}
              </section>
              <Cpus status={status} />
            </div>
            <Jobs jobs={state.jobs} kill={setVictim} />
            <div class="grid halves">
              {state.past && <Hour past={state.past} />}
              <Events events={state.events} />
            </div>
            <Ask />
            <Nodes nodes={status.nodes ?? []} />
            <Queues queues={status.cluster?.queues ?? []} />
          </>
        ) : !away && <p class="empty">Asking the daemon…</p>}
      </main>
      {victim && <Kill job={victim} close={() => setVictim(null)} />}
    </>
  );
}

function turning(rows: number, slotMs: number, sharing: string): string {
  if (rows === 0) return "";
  return `${rows} ${rows === 1 ? "row" : "rows in turn"}, slots of ${slotMs} ms, ${sharing} sharing`;
}

function Top({ status }: { status: Status | null }) {
  const [theme, setTheme] = useState(localStorage.getItem(THEME) ?? "auto");
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    localStorage.setItem(THEME, theme);
  }, [theme]);
  return (
    <header>
      <h1>cosched</h1>
      {status && <>
        <span class="fact"><b>{plain(status.node)}</b>{status.cluster && !status.cluster.alone && <> in {plain(status.cluster.name)}</>}</span>
        <span class="fact">{status.cpus.length} CPUs</span>
        <span class="fact">policy <b>{status.policy}</b></span>
        <span class="fact">up {duration(now() - status.started_unix_ms)}</span>
        <span class="fact muted">{status.version}</span>
      </>}
      <span class="space" />
      <a class="fact" href="/playground">Playground</a>
      {state.me && <span class="fact">you are <b>{plain(state.me.user)}</b>{state.me.exempt && " (administrator)"}</span>}
      <label class="fact">Theme <select value={theme} onChange={(e) => setTheme(e.currentTarget.value)}>
        <option value="auto">system</option><option value="light">light</option><option value="dark">dark</option>
      </select></label>
    </header>
  );
}

function Banner({ what, why, hint, close }: { what: string; why: string; hint: string; close?: () => void }) {
  return (
    <div class="banner" role="alert">
      <div><b>{plain(what)}</b>{why && <span>{plain(why)}</span>}<span class="hint">→ {plain(hint)}</span></div>
      {close && <button type="button" onClick={close} aria-label="Close">×</button>}
    </div>
  );
}

/** Asks for confirmation before it kills a job. */
function Kill({ job, close }: { job: Job; close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const kill = (body: unknown) => {
    void act("POST", `/v1/jobs/${job.id}/kill`, body);
    close();
  };
  return (
    <dialog ref={dialog} onClose={close} aria-labelledby="kill">
      <h2 id="kill">End job {job.id}, {plain(job.name)}?</h2>
      <p>All its processes get SIGTERM, and what is left after {GRACE_MS / 1000} s gets SIGKILL. This cannot be undone.</p>
      <div class="actions">
        <button type="button" onClick={close}>Keep it running</button>
        <button type="button" class="danger" onClick={() => kill({ signal: 15, grace_ms: GRACE_MS })}>End job {job.id}</button>
        <button type="button" class="danger" onClick={() => kill({ signal: 9 })}>SIGKILL at once</button>
      </div>
    </dialog>
  );
}

takeToken();
const root = document.getElementById("app");
if (root) render(<App />, root);
