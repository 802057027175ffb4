// The list of jobs, to be changed.

import type { Job, Picture } from "./engine";
import { TYPES } from "./words";

const JOBS_MAX = 12;

export function JobList({ jobs, ends, change, colour }: { jobs: Job[]; ends: Picture["jobs"]; change: (jobs: Job[]) => void; colour: (id: number) => string }) {
  const set = (at: number, part: Partial<Job>) => change(jobs.map((job, n) => (n === at ? { ...job, ...part } : job)));
  const number = (at: number, name: keyof Job, label: string, min: number, max: number) => (
    <td class="num">
      <input type="number" aria-label={`${label} of job ${at + 1}`} style={{ width: "5em" }} min={min} max={max} value={jobs[at]?.[name]}
        onChange={(e) => set(at, { [name]: Number(e.currentTarget.value) })} />
    </td>
  );
  return (
    <>
      <div class="scroll">
        <table>
          <thead>
            <tr><th>Job</th><th class="num">Processes</th><th>What it does</th><th class="num">Alone (ms)</th><th class="num">Comes at (ms)</th><th class="num">Ends at (ms)</th><th /></tr>
          </thead>
          <tbody>
            {jobs.map((job, at) => (
              <tr key={at}>
                <td><span class="chip" style={{ background: colour(at) }} />{at + 1}</td>
                {number(at, "tasks", "Processes", 1, 16)}
                <td><select aria-label={`What job ${at + 1} does`} value={job.type} onChange={(e) => set(at, { type: e.currentTarget.value })}>
                  {TYPES.map(([name, text]) => <option key={name} value={name}>{text}</option>)}
                </select></td>
                {number(at, "exec_ms", "Time alone", 1, 1000)}
                {number(at, "arrival_ms", "Arrival", 0, 1000)}
                <td class="num">{ends[at]?.finish_ms?.toFixed(1) ?? "–"}</td>
                <td><button aria-label={`Remove job ${at + 1}`} disabled={jobs.length === 1} onClick={() => change(jobs.filter((_, n) => n !== at))}>×</button></td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="actions"><button disabled={jobs.length >= JOBS_MAX} onClick={() => change([...jobs, { ...jobs.at(-1)!, arrival_ms: 0 }])}>Add a job</button></p>
    </>
  );
}
