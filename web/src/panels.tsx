// The panels beside the matrix and the jobs: CPUs, problems, nodes, queues, the last hour, events.

import "./panels.css";
import type { Bucket, Samples, JobEvent, Node, Problem, Queue, Status } from "./api";
import { act, state } from "./store";
import { bytes, clock, duration, micros, percent, plain } from "./text";

export function Problems({ problems }: { problems: Problem[] }) {
  if (problems.length === 0) return null;
  return (
    <section class="problems" aria-labelledby="problems">
      <h2 id="problems">Problems <span class="count">{problems.length}</span></h2>
      <ul>
        {problems.map((problem) => (
          <li key={problem.what}>
            <b>{plain(problem.what)}</b><span>{plain(problem.why)}</span><span class="hint">→ {plain(problem.hint)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

export function Cpus({ status }: { status: Status }) {
  const cpus = status.load?.cpus ?? [];
  return (
    <section aria-labelledby="cpus">
      <h2 id="cpus">CPUs</h2>
      <div class="cpus">
        {cpus.map(({ cpu, busy }) => (
          <div key={cpu} class="cpu" title={`cpu${cpu}: ${percent(busy)} busy`}>
            <span class="level"><span class="fill" style={{ height: `${Math.round(busy * 100)}%` }} /></span>
            <span class="muted">{cpu}</span>
          </div>
        ))}
      </div>
      <dl class="facts">
        <dt>Load</dt><dd>{status.load?.average?.toFixed(2) ?? "–"}</dd>
        <dt>Memory free</dt><dd>{bytes(status.load?.memory_available_bytes)} of {bytes(status.memory_bytes)}</dd>
        <dt>Switches</dt><dd>{status.switches.count.toLocaleString("en")}, {status.switches.late} late</dd>
        <dt>Switch done</dt><dd>median {micros(status.switches.done.p50_us)}, 99 % within {micros(status.switches.done.p99_us)}</dd>
        <dt>Outside slots</dt><dd>{duration(state.jobs.reduce((sum, job) => sum + (job.outside_ms ?? 0), 0))} of the jobs' CPU time</dd>
      </dl>
      <SwitchTimes buckets={state.switchTimes} />
    </section>
  );
}

/** How long after their boundary switches were done. The few late ones matter, so heights are logarithmic. */
function SwitchTimes({ buckets }: { buckets: Bucket[] }) {
  const [first, last] = [buckets.findIndex(({ count }) => count > 0), buckets.findLastIndex(({ count }) => count > 0)];
  if (first < 0) return null;
  const shown = buckets.slice(first, last + 1);
  const top = 10 ** Math.max(1, Math.ceil(Math.log10(Math.max(...shown.map(({ count }) => count)))));
  const height = (count: number) => `${(100 * Math.log10(count + 1)) / Math.log10(top + 1)}%`;
  const bound = (at: number) => buckets[at]?.within_us ?? 0;
  const range = (at: number) => (bound(at) === Infinity ? `later than ${micros(bound(at - 1))}` : `${micros(bound(at - 1))} to ${micros(bound(at))}`);
  const words = shown.map(({ count }, at) => `${range(first + at)}: ${count.toLocaleString("en")}`);
  return (
    <figure class="switches">
      <figcaption>Switches by the time from the boundary until they were done</figcaption>
      <div class="axes" role="img" aria-label={words.join("; ")}>
        <div class="y">{marks(top).map((count) => <span key={count} style={{ bottom: height(count) }}>{count.toLocaleString("en")}</span>)}</div>
        <div class="bars">{shown.map(({ count, within_us }, at) => (
          <span key={within_us} title={words[at]} style={{ height: height(count) }} />
        ))}</div>
        <div class="x ends"><span>{micros(bound(first - 1))}</span><span>{bound(last) === Infinity ? "later" : micros(bound(last))}</span></div>
      </div>
    </figure>
  );
}

/** 0 and at most three powers of ten, the highest among them. */
function marks(top: number): number[] {
  const step = 10 ** Math.ceil(Math.log10(top) / 3);
  return [0, top / step ** 2, top / step, top].filter((count) => count === 0 || count >= 10);
}

const WIDE = 600;
const HIGH = 90;
const MINUTE_MS = 60_000;

/** Times on an axis, at most six, at whole minutes of which the hour has as many. */
function times(from: number, to: number): number[] {
  const step = [1, 2, 5, 10, 15, 30, 60].map((minutes) => minutes * MINUTE_MS).find((ms) => (to - from) / ms < 6) ?? to - from;
  const all: number[] = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) all.push(at);
  return all;
}

export function Hour({ past }: { past: Samples }) {
  const samples = past.samples;
  if (samples.length < 2) return null;
  const last = samples[samples.length - 1]?.unix_ms ?? 0;
  const from = Math.min(samples[0]?.unix_ms ?? 0, last - 600_000);
  const x = (at: number) => ((at - from) / (last - from)) * WIDE;
  const y = (part: number) => HIGH - Math.min(1, part) * HIGH;
  const path = (of: (sample: (typeof samples)[number]) => number) => {
    let before = 0;
    return samples.map((sample) => {
      const gap = sample.unix_ms - before > 3 * past.period_ms;
      before = sample.unix_ms;
      return `${gap ? "M" : "L"}${x(sample.unix_ms).toFixed(1)} ${y(of(sample)).toFixed(1)}`;
    }).join("");
  };
  const jobs = (sample: (typeof samples)[number]) => sample.jobs.reduce((sum, job) => sum + job.received, 0);
  const ticks = times(from, last);
  return (
    <section aria-labelledby="hour">
      <h2 id="hour">Utilisation, last {duration(last - from)}</h2>
      <div class="axes">
        <div class="y">{[0, 50, 100].map((part) => <span key={part} style={{ bottom: `${part}%` }}>{part} %</span>)}</div>
        <svg viewBox={`0 0 ${WIDE} ${HIGH}`} preserveAspectRatio="none" class="hour" role="img" aria-label="CPU utilisation over time">
          <path class="grid" d={`M0 ${y(0.5)}H${WIDE}M0 ${y(1)}H${WIDE}M0 ${y(0)}H${WIDE}${ticks.map((at) => `M${x(at).toFixed(1)} 0V${HIGH}`).join("")}`} />
          <path class="busy" d={path((sample) => sample.busy)} />
          <path class="of-jobs" d={path(jobs)} />
        </svg>
        <div class="x">{ticks.map((at) => <time key={at} style={{ left: `${(100 * (at - from)) / (last - from)}%` }}>{clock(at).slice(0, 5)}</time>)}</div>
      </div>
      <p class="legend"><span class="key busy" /> CPUs busy <span class="key of-jobs" /> used by jobs <span class="muted">in % of all CPUs, over the time of day; a point every {duration(past.period_ms)}</span></p>
    </section>
  );
}

export function Nodes({ nodes }: { nodes: Node[] }) {
  if (nodes.length < 2) return null;
  const may = state.me?.exempt ?? false;
  return (
    <section aria-labelledby="nodes">
      <h2 id="nodes">Nodes <span class="count">{nodes.length}</span></h2>
      <div class="scroll"><table>
        <thead><tr><th>Node</th><th>State</th><th class="num">CPUs</th><th class="num">Other load</th><th>Version</th><th>Actions</th></tr></thead>
        <tbody>{nodes.map((node) => (
          <tr key={node.name}>
            <td>{plain(node.name)}</td>
            <td><span class={`state ${node.alive ? "running" : "lost"}`}>{node.alive ? (node.drains ? "drains" : "up") : node.silent_since_unix_ms ? "silent" : "gone"}</span></td>
            <td class="num">{node.cpus || "–"}</td><td class="num">{node.load?.toFixed(1) ?? "–"}</td><td>{plain(node.version ?? "–")}</td>
            <td class="actions"><button type="button" disabled={!may || !node.alive} title={may ? "Whether it gets new jobs" : "Only administrators drain nodes."}
              onClick={() => void act("PUT", `/v1/nodes/${encodeURIComponent(node.name)}`, { drains: !node.drains })}>{node.drains ? "Undrain" : "Drain"}</button></td>
          </tr>
        ))}</tbody>
      </table></div>
    </section>
  );
}

export function Queues({ queues }: { queues: Queue[] }) {
  if (queues.every((queue) => queue.waiting === 0) && queues.length < 2) return null;
  return (
    <section aria-labelledby="queues">
      <h2 id="queues">Queues</h2>
      <div class="scroll"><table>
        <thead><tr><th>Queue</th><th class="num">Waiting</th><th class="num">Started</th><th class="num">Time limit</th><th>Nodes</th></tr></thead>
        <tbody>{queues.map((queue) => (
          <tr key={queue.name}><td>{plain(queue.name)}</td><td class="num">{queue.waiting}</td><td class="num">{queue.running}</td>
            <td class="num">{queue.time_ms_max === undefined ? "none" : duration(queue.time_ms_max)}</td><td>{queue.exclusive ? "exclusive" : "shared"}</td></tr>
        ))}</tbody>
      </table></div>
    </section>
  );
}

export function Events({ events }: { events: { id: string; at: number; event: JobEvent }[] }) {
  return (
    <section aria-labelledby="events">
      <h2 id="events">Events</h2>
      {events.length === 0 && <p class="empty">What happens to jobs is shown here.</p>}
      <ol class="past">
        {events.slice(0, 30).map(({ id, at, event }) => (
          <li key={id}><time>{clock(at)}</time> <b>{event.what}</b> job {event.id} {plain(event.name)} <span class="muted">{plain(event.detail)}</span></li>
        ))}
      </ol>
    </section>
  );
}
