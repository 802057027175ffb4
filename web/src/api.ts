// The daemon's API as forwarded by `cosched web`: docs/schema/openapi.json has each type in full.

export type JobState = "waiting" | "running" | "asleep" | "dropped" | "suspended" | "unknown" | "ended" | "lost";

export interface Job {
  id: number;
  name: string;
  uid: number;
  user: string;
  class: string;
  policy: string;
  own_policy?: string;
  cpus: number;
  places?: string;
  state: JobState;
  command: string[];
  submitted_unix_ms: number;
  ended_unix_ms?: number;
  exit?: { code?: number; signal?: number };
  processes?: number;
  cpu_time_ms: number;
  cpu_percent?: number;
  memory_bytes?: number;
  /** The memory that it says it needs. */
  mem_bytes?: number;
  share?: number;
  share_max?: number;
  share_due?: number;
  share_received?: number;
  /** CPU time outside its slots, on idle CPUs or astray. */
  outside_ms?: number;
  waits_for?: string;
  ended_why?: string;
  queue?: string;
  row?: number;
  decided?: { matter: string; user: string }[];
  waiting?: { mode: string; waits?: number; spins?: number; blocks?: number };
}

export interface Row {
  index: number;
  cells: (number | null)[];
  also: number[];
  slots: number;
}

export interface Matrix {
  columns: string[];
  rows: Row[];
  turns: number[];
  cycle_slots: number;
}

export interface Plan {
  generation: number;
  epoch_unix_ns: number;
  slot_length_ns: number;
  policy: string;
  sharing: string;
  matrix: Matrix;
  cut?: boolean;
}

export interface Problem {
  what: string;
  why: string;
  hint: string;
}

export interface Node {
  name: string;
  cpus: number;
  load?: number;
  alive: boolean;
  drains: boolean;
  version?: string;
  silent_since_unix_ms?: number;
}

export interface Queue {
  name: string;
  exclusive: boolean;
  waiting: number;
  running: number;
  time_ms_max?: number;
}

export interface Status {
  version: string;
  node: string;
  started_unix_ms: number;
  policy: string;
  sharing: string;
  slot_length_ms: number;
  cpus: number[];
  memory_bytes: number;
  generation: number;
  matrix: Matrix;
  switches: { count: number; late: number; wake: Quantiles; done: Quantiles };
  warnings: Problem[];
  load?: { cpus: { cpu: number; busy: number }[]; average?: number; memory_available_bytes?: number };
  nodes?: Node[];
  cluster?: { name: string; alone: boolean; store_answers: boolean; queues: Queue[] };
}

export interface Quantiles {
  count: number;
  p50_us: number;
  p99_us: number;
  max_us: number;
}

export interface Me {
  uid: number;
  user: string;
  exempt: boolean;
}

export interface JobEvent {
  what: string;
  detail: string;
  id: number;
  name: string;
  user: string;
  state: JobState;
}

export interface StreamEvent {
  unix_ms: number;
  kind: "job" | "plan" | "problems" | "gap";
  job?: JobEvent;
  plan?: Plan;
  problems?: Problem[];
  gap?: string;
}

export interface Samples {
  period_ms: number;
  samples: { unix_ms: number; busy: number; jobs: { id: number; due: number; received: number }[] }[];
}

/** Switches that were done within this time after their boundary, and not within the bound before. */
export interface Bucket {
  within_us: number;
  count: number;
}

const BUCKET = /^cosched_switch_skew_seconds_bucket\{le="([^"]+)"\} (\d+)/gm;

/** The distribution of switches, from the metrics: buckets there are cumulative. */
export async function switchTimes(): Promise<Bucket[]> {
  const text = await ask<string>("GET", "/v1/metrics");
  let before = 0;
  return Array.from(text.matchAll(BUCKET), ([, bound, seen]) => {
    const count = Number(seen) - before;
    before += count;
    return { within_us: bound === "+Inf" ? Infinity : Number(bound) * 1e6, count };
  });
}

/** A refusal with the daemon's explanation. */
export class Refusal extends Error {
  constructor(readonly status: number, readonly what: string, readonly why: string, readonly hint: string) {
    super(what);
  }
}

const KEY = "cosched-token";

/** Removes the token from the address, where the history and onlookers would see it, and stores it for this origin. */
export function takeToken(): void {
  const token = new URLSearchParams(location.search).get("token");
  if (token) {
    localStorage.setItem(KEY, token);
    history.replaceState(null, "", "/");
  }
}

function headers(): Record<string, string> {
  const token = localStorage.getItem(KEY);
  // For a team there is none: the browser sends the reverse proxy what that has asked for.
  return token ? { Authorization: `Bearer ${token}` } : {};
}

/** By how much the daemon's clock is ahead of ours, in ms: estimated from the answer with the shortest round trip. */
export let clockAhead = 0;
let bestRoundTrip = Infinity;

/** The time at the daemon's machine. */
export function now(): number {
  return Date.now() + clockAhead;
}

function learnClock(response: Response, asked: number): void {
  const server = Number(response.headers.get("Cosched-Unix-Us")) / 1000;
  // Not the system's clock: one that is set back in between would make it negative.
  const roundTrip = performance.now() - asked;
  const ahead = server - (Date.now() - roundTrip / 2);
  // The best round trip ages with each answer. Where two estimates exclude each other, one of the clocks was set.
  bestRoundTrip *= 1.1;
  const wasSet = Math.abs(ahead - clockAhead) > (roundTrip + bestRoundTrip) / 2 + 2;
  if (server > 0 && (wasSet || roundTrip <= bestRoundTrip)) {
    bestRoundTrip = roundTrip;
    clockAhead = ahead;
  }
}

async function refusal(response: Response): Promise<Refusal> {
  const text = await response.text();
  if (response.headers.get("Content-Type")?.startsWith("text/html")) {
    return new Refusal(response.status, `the reverse proxy answers ${response.status}`, "`cosched web` does not run behind it, or you are not logged in",
      "The page tries again by itself. Reload it to log in.");
  }
  try {
    const body = JSON.parse(text) as Problem;
    return new Refusal(response.status, body.what, body.why, body.hint);
  } catch {
    const [what, hint] = text.split("\n");
    return new Refusal(response.status, what ?? "", "", hint ?? "");
  }
}

const SILENT = new Refusal(0, "`cosched web` does not answer", "it has ended, or the connection to it has",
  "The page tries again by itself. If it has ended, start it again, and open the address that it prints.");

/** The data is there within this time. */
const ANSWER_MS = 10_000;
/** A change may need the cluster's store. */
const CHANGE_MS = 40_000;
/** The daemon sends something every 15 s. */
const SILENCE_MS = 35_000;

/** Sends a request, and uses its answer. A peer that is silently gone closes nothing, so each step has a time limit, which `more` extends. */
async function exchange<T>(path: string, init: RequestInit, stop: AbortController, use: (response: Response, more: (ms: number) => void) => Promise<T>): Promise<T> {
  let timer: number | undefined;
  const more = (ms: number) => {
    clearTimeout(timer);
    timer = window.setTimeout(() => stop.abort(), ms);
  };
  more(init.method === undefined || init.method === "GET" ? ANSWER_MS : CHANGE_MS);
  try {
    const response = await fetch(path, { ...init, headers: headers(), signal: stop.signal });
    if (!response.ok) throw await refusal(response);
    return await use(response, more);
  } catch (e) {
    throw e instanceof Refusal ? e : SILENT;
  } finally {
    clearTimeout(timer);
  }
}

export function ask<T>(method: string, path: string, body?: unknown): Promise<T> {
  return send(path, body === undefined ? undefined : JSON.stringify(body), method);
}

/** Sends a body as it is. Answers with data are JSON; the metrics are text. */
export async function send<T>(path: string, body?: BodyInit, method = "POST"): Promise<T> {
  const asked = performance.now();
  return exchange(path, { method, body }, new AbortController(), (response) => {
    learnClock(response, asked);
    return (response.headers.get("Content-Type")?.startsWith("text/plain") ? response.text() : response.json()) as Promise<T>;
  });
}

/** Reads the stream of events until it ends or `stop` ends it. To resume, pass the id of the last event as `after`. */
export async function follow(after: string, stop: AbortController, tell: (id: string, event: StreamEvent) => void): Promise<void> {
  await exchange(`/v1/events?follow=true&after=${encodeURIComponent(after)}`, {}, stop, async (response, more) => {
    if (!response.body) return;
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      more(SILENCE_MS);
      const { value, done } = await reader.read();
      if (done) return;
      const parts = (text + value).split("\n\n");
      text = parts.pop() ?? "";
      for (const part of parts) {
        const field = (name: string) => part.split("\n").find((line) => line.startsWith(name))?.slice(name.length);
        const data = field("data: ");
        if (data) tell(field("id: ") ?? "", JSON.parse(data) as StreamEvent);
      }
    }
  });
}
