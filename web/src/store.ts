// The state of the page: updated by the stream of events, and requested again after changes.

import { ask, follow, Refusal, switchTimes } from "./api";
import type { Bucket, Samples, Job, JobEvent, Me, Plan, Problem, Status } from "./api";

/** Numbers (CPU time, memory, load) are requested at this interval while the page is visible. */
const NUMBERS_MS = 2000;
const HISTORY_MS = 10_000;
/** A clock that moves by more than this against the page's own was set, or the machine has slept. */
const JUMP_MS = 5000;
/** Changes within this time are requested together. */
const CHANGES_MS = 150;
const RETRY_MS = 1000;
const EVENTS_SHOWN = 200;
/** Waits are counted for at least this long before a rate is made of them. */
const RATE_MS = 1000;

export interface State {
  me: Me | null;
  status: Status | null;
  jobs: Job[];
  /** The waits of each job that has the wait library, per second. */
  rates: Map<number, { spins: number; blocks: number }>;
  plan: Plan | null;
  problems: Problem[];
  past: Samples | null;
  switchTimes: Bucket[];
  events: { id: string; at: number; event: JobEvent }[];
  /** Why the page is not up to date. */
  away: Refusal | null;
  /** Why an action of the user failed. */
  refused: Refusal | null;
}

export const state: State = {
  me: null, status: null, jobs: [], rates: new Map(), plan: null, problems: [], past: null, switchTimes: [], events: [], away: null, refused: null,
};

let tell: () => void = () => {};
let due: number | undefined;
let asking = false;
/** Initially request all events that the daemon remembers. */
let lastId = "0";
let historyAt = -Infinity;
/** Ends the present stream of events; the next one begins after the last event. */
let renew: () => void = () => {};

export function change(part: Partial<State>): void {
  Object.assign(state, part);
  tell();
}

export function start(listener: () => void): void {
  tell = listener;
  void refresh();
  void stream();
  let offset = Date.now() - performance.now();
  const look = () => {
    const before = offset;
    offset = Date.now() - performance.now();
    // Connections may not have outlived a sleep, and nothing tells.
    if (Math.abs(offset - before) > JUMP_MS) renew();
    if (!document.hidden) void refresh();
  };
  setInterval(look, NUMBERS_MS);
  document.addEventListener("visibilitychange", look);
}

function soon(): void {
  due ??= window.setTimeout(() => { due = undefined; void refresh(); }, CHANGES_MS);
}

async function refresh(): Promise<void> {
  if (asking) return soon();
  asking = true;
  try {
    const [status, list, me] = await Promise.all([
      ask<Status>("GET", "/v1/status"), ask<{ jobs: Job[] }>("GET", "/v1/jobs"), ask<Me>("GET", "/v1/limits"),
    ]);
    if (performance.now() - historyAt > HISTORY_MS) {
      historyAt = performance.now();
      [state.past, state.switchTimes] = await Promise.all([ask<Samples>("GET", "/v1/samples"), switchTimes()]);
    }
    rate(list.jobs);
    // A matrix that is too long for the stream is taken from the status.
    const plan = state.plan?.cut ? { ...state.plan, matrix: status.matrix, cut: false } : state.plan;
    change({ status, jobs: list.jobs, me, plan, problems: status.warnings, away: null });
  } catch (e) {
    change({ away: asRefusal(e) });
  } finally {
    asking = false;
  }
}

let counted = { at: 0, jobs: [] as Job[] };

function rate(jobs: Job[]): void {
  const at = performance.now();
  const seconds = (at - counted.at) / 1000;
  if (seconds * 1000 < RATE_MS) return;
  const before = new Map(counted.jobs.map((job) => [job.id, job.waiting]));
  state.rates.clear();
  for (const { id, waiting } of jobs) {
    const old = before.get(id);
    if (!waiting || !old) continue;
    const of = (what: "spins" | "blocks") => Math.max(0, (waiting[what] ?? 0) - (old[what] ?? 0)) / seconds;
    state.rates.set(id, { spins: of("spins"), blocks: of("blocks") });
  }
  counted = { at, jobs };
}

async function stream(): Promise<never> {
  for (;;) {
    const stop = new AbortController();
    renew = () => stop.abort();
    try {
      await follow(lastId, stop, (id, event) => {
        lastId = id;
        if (event.plan) change({ plan: event.plan });
        if (event.plan?.cut || event.gap) soon();
        if (event.problems) change({ problems: event.problems });
        if (event.job) {
          state.events.unshift({ id, at: event.unix_ms, event: event.job });
          state.events.length = Math.min(state.events.length, EVENTS_SHOWN);
          soon();
        }
      });
    } catch (e) {
      if (!stop.signal.aborted) change({ away: asRefusal(e) });
    }
    await new Promise((go) => setTimeout(go, RETRY_MS));
    soon();
  }
}

/** Carries out an action of the user; if the daemon refuses, the reason is shown. */
export async function act(method: string, path: string, body: unknown = {}): Promise<boolean> {
  try {
    await ask(method, path, body);
    change({ refused: null });
    await refresh();
    return true;
  } catch (e) {
    change({ refused: asRefusal(e) });
    return false;
  }
}

function asRefusal(e: unknown): Refusal {
  return e instanceof Refusal ? e : new Refusal(0, "the connection is lost", String(e), "The page tries again by itself.");
}
