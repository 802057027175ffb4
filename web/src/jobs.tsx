// The jobs: each one's due and actual share, and the actions that the user may take.

import { useEffect, useState } from "preact/hooks";
import type { Job } from "./api";
import { ask, now } from "./api";
import { colour } from "./colour";
import { act, state } from "./store";
import { bytes, clock, duration, percent, plain } from "./text";

const MIB = 1 << 20;
const CLASSES = ["express", "interactive", "batch", "standby"];
const POLICIES = ["default", "auto", "gang", "local", "pb", "dcs"];

/** Why this user may not change a job; empty if this is allowed. */
function forbidden(job: Job): string {
  const me = state.me;
  if (!me || me.exempt || me.uid === job.uid) return "";
  return `Only ${plain(job.user)} or an administrator may change job ${job.id}; you are ${plain(me.user)}.`;
}

/** Why the job is in its state. */
function reason(job: Job): string {
  if (job.state === "waiting") return job.waits_for ?? "";
  if (job.ended_why) return job.ended_why;
  const by = job.decided?.find((decision) => decision.matter === "suspension");
  if (job.state === "suspended" && by) return `by ${by.user}`;
  return "";
}

function Bar({ due, got, id }: { due?: number; got?: number; id: number }) {
  if (due === undefined && got === undefined) return <span class="muted">–</span>;
  const width = (part: number | undefined) => `${Math.min(100, Math.round((part ?? 0) * 100))}%`;
  return (
    <span class="bar" title={`due ${percent(due)}, received ${percent(got)} of the machine's CPU time`}>
      <span class="track">
        <span class="fill" style={{ width: width(got), background: colour(id) }} />
        <span class="mark" style={{ left: width(due) }} />
      </span>
      <span class="num">{percent(got)}</span>
      <span class="muted num">/ {percent(due)}</span>
    </span>
  );
}

export function Jobs({ jobs, kill }: { jobs: Job[]; kill: (job: Job) => void }) {
  const [open, setOpen] = useState<number | null>(null);
  const [filter, setFilter] = useState("");
  const words = filter.toLowerCase();
  const shown = jobs.filter((job) => !words || [job.id, job.name, job.user, job.state, job.class].join(" ").toLowerCase().includes(words));
  return (
    <section aria-labelledby="jobs">
      <div class="head">
        <h2 id="jobs">Jobs <span class="count">{jobs.length}</span></h2>
        <input type="search" placeholder="Filter: name, user, state…" aria-label="Filter jobs" value={filter}
          onInput={(e) => setFilter(e.currentTarget.value)} />
      </div>
      {jobs.length === 0 ? <p class="empty">No jobs. Start one: <code>cosched run -- mpirun -n 2 ./a.out</code></p> : (
        <div class="scroll">
          <table class="jobs">
            <thead><tr>
              <th class="num">Id</th><th>Name</th><th>User</th><th>State</th><th title="Received of the machine's CPU time, of what the plan gave: the last 10 s or so">Got / due</th>
              <th>Class</th><th>Policy</th><th class="num">CPUs</th><th class="num">CPU time</th><th class="num">Memory</th>
              <th class="num" title="CPU time outside its slots: on idle CPUs, or astray">Outside</th>
              <th class="num" title="Waits for messages per second that ended while the process still spun, and times that it blocked">Spun / blocked</th><th>Actions</th>
            </tr></thead>
            <tbody>
              {shown.map((job) => [
                <Line key={job.id} job={job} open={open === job.id} toggle={() => setOpen(open === job.id ? null : job.id)} kill={kill} />,
                open === job.id && <tr key={`d${job.id}`} class="details"><td colSpan={13}><Details job={job} /></td></tr>,
              ])}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function Line({ job, open, toggle, kill }: { job: Job; open: boolean; toggle: () => void; kill: (job: Job) => void }) {
  const not = forbidden(job);
  const name = plain(job.name);
  const stopped = job.state === "suspended" || job.state === "dropped";
  const path = `/v1/jobs/${job.id}/${stopped ? "resume" : "suspend"}`;
  const verb = stopped ? "Resume" : "Suspend";
  const why = reason(job);
  const rate = state.rates.get(job.id);
  return (
    <tr class={`job ${job.state}`} data-job={job.id}>
      <td class="num"><span class="chip" style={{ background: colour(job.id) }} />{job.id}</td>
      <td><button type="button" class="link" aria-expanded={open} onClick={toggle} title={plain(job.command.join(" "))}>{name}</button></td>
      <td>{plain(job.user)}</td>
      <td><span class={`state ${job.state}`}>{job.state}</span>{why && <span class="why"> {plain(why)}</span>}</td>
      <td><Bar due={job.share_due} got={job.share_received} id={job.id} /></td>
      <td>{job.class}</td>
      <td>{job.policy}</td>
      <td class="num">{job.cpus}</td>
      <td class="num">{duration(job.cpu_time_ms)}</td>
      <td class="num">{bytes(job.memory_bytes)}</td>
      <td class="num">{job.outside_ms === undefined ? "–" : duration(job.outside_ms)}</td>
      <td class="num">{rate ? `${Math.round(rate.spins)} / ${Math.round(rate.blocks)} per s` : "–"}</td>
      <td class="actions">
        <button type="button" disabled={not !== "" || job.state === "waiting"} title={not || `${verb} job ${job.id}`} onClick={() => void act("POST", path)}>{verb}</button>
        <button type="button" class="danger" disabled={not !== ""} title={not || `End job ${job.id}`} onClick={() => kill(job)}>Kill…</button>
      </td>
    </tr>
  );
}

interface Past { unix_ms: number; what: string; detail: string }

function Details({ job }: { job: Job }) {
  const [past, setPast] = useState<Past[]>([]);
  useEffect(() => {
    ask<{ events: Past[] }>("GET", `/v1/jobs/${job.id}/events`).then((list) => setPast(list.events), () => setPast([]));
  }, [job.id, job.state, job.class, job.policy]);
  const not = forbidden(job);
  const post = (what: string, body: unknown) => void act("POST", `/v1/jobs/${job.id}/${what}`, body);
  const share = job.share_max === undefined ? "" : String(Math.round(job.share_max * 1000) / 10);
  const memory = job.mem_bytes === undefined ? "" : String(Math.round(job.mem_bytes / MIB));
  const waits = job.waiting;
  return (
    <div class="detail">
      <dl>
        <dt>Command</dt><dd><code>{plain(job.command.join(" ")) || "not yours to see"}</code></dd>
        <dt>Submitted</dt><dd>{clock(job.submitted_unix_ms)} ({duration(now() - job.submitted_unix_ms)} ago)</dd>
        <dt>Slots</dt><dd>{job.share === undefined ? "none: it is scheduled by Linux" : `${percent(job.share)} of the time, row ${job.row ?? "–"}`}</dd>
        <dt>Place</dt><dd>{job.places === undefined ? "any CPU" : `CPUs ${job.places}`}</dd>
        {waits && <><dt>Waits</dt><dd>{waits.mode}: {waits.waits ?? 0}, of them spun {waits.spins ?? 0}, blocked {waits.blocks ?? 0}</dd></>}
        {job.queue && <><dt>Queue</dt><dd>{plain(job.queue)}</dd></>}
      </dl>
      <fieldset disabled={not !== ""}>
        {not && <p class="muted">{not}</p>}
        <label>Class <select value={job.class} onChange={(e) => post("class", { class: e.currentTarget.value })}>
          {CLASSES.map((c) => <option key={c} value={c}>{c}</option>)}
        </select></label>
        <label>Policy <select value={job.own_policy ?? "default"} onChange={(e) => post("policy", e.currentTarget.value === "default" ? {} : { policy: e.currentTarget.value })}>
          {POLICIES.map((p) => <option key={p} value={p}>{p === "default" ? "the machine's" : p}</option>)}
        </select></label>
        <label>Share at most <input key={share} type="number" min="0.1" max="100" step="0.1" defaultValue={share} placeholder="no limit"
          onChange={(e) => post("share", e.currentTarget.value === "" ? {} : { share_max: Number(e.currentTarget.value) / 100 })} /> %</label>
        <label>CPUs <input key={`c${job.cpus}`} type="number" min="1" step="1" defaultValue={String(job.cpus)}
          onChange={(e) => e.currentTarget.value !== "" && post("resources", { cpus: Number(e.currentTarget.value) })} /></label>
        <label>Memory needed <input key={`m${memory}`} type="number" min="1" step="1" defaultValue={memory} placeholder="not said"
          onChange={(e) => e.currentTarget.value !== "" && post("resources", { mem_bytes: Number(e.currentTarget.value) * MIB })} /> MiB</label>
      </fieldset>
      <ol class="past">
        {past.slice(-12).map((event) => <li key={`${event.unix_ms}${event.what}`}><time>{clock(event.unix_ms)}</time> <b>{plain(event.what)}</b> {plain(event.detail)}</li>)}
      </ol>
    </div>
  );
}
