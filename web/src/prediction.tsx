// The output of `cosched sim whatif --json`: a line with a prediction, and lines with how right predictions were.

import { duration, plain } from "./text";

interface Predicted { cpu_s: number; slowdown?: number | null; is_bound: boolean; ends_s?: number | null; done?: number | null }

interface Forecast {
  for_s: number;
  look_s: number;
  policy: string;
  jobs: { id: number; name: string; predicted: Record<string, Predicted> }[];
}

interface Checked { predicted_s: number; found_s: number; difference: number; predicted_end_s?: number | null; found_end_s?: number | null }

interface Check { at_unix_ms: number; changed: string[]; jobs: { id: number; name: string; checked: Checked }[] }

/** The setting without a change. */
const NOW = "now";

function parsed(output: string): (Forecast | Check)[] {
  return output.split("\n").flatMap((line) => {
    try {
      return [JSON.parse(line) as Forecast | Check];
    } catch {
      // Not yet written to its end.
      return [];
    }
  });
}

export function Prediction({ output }: { output: string }) {
  return <>{parsed(output).map((part, place) => ("for_s" in part ? <Ahead key={place} forecast={part} /> : <Afterwards key={place} check={part} />))}</>;
}

function Ahead({ forecast }: { forecast: Forecast }) {
  const others = [...new Set(forecast.jobs.flatMap((job) => Object.keys(job.predicted)))].filter((name) => name !== NOW).sort();
  const bound = forecast.jobs.some((job) => Object.values(job.predicted).some((predicted) => predicted.is_bound));
  const slowdown = (predicted?: Predicted) => {
    if (predicted?.slowdown == null) return "–";
    return `${predicted.is_bound ? "≥ " : ""}${predicted.slowdown.toFixed(2)}`;
  };
  return (
    <>
      <p>The next {duration(forecast.for_s * 1000)} by an observation of {duration(forecast.look_s * 1000)}; now: {plain(forecast.policy)}.
        Slowdowns are relative to the machine alone.</p>
      <div class="scroll"><table class="prediction">
        <thead><tr><th class="num">Job</th><th>Name</th><th class="num">CPU time, now</th><th>End, now</th>
          <th class="num">Slowdown, now</th>{others.map((name) => <th key={name} class="num">{plain(name)}</th>)}</tr></thead>
        <tbody>{forecast.jobs.map((job) => {
          const now = job.predicted[NOW];
          const best = Math.min(...Object.values(job.predicted).map((p) => (p.is_bound ? Infinity : p.slowdown ?? Infinity)));
          const mark = (p?: Predicted) => (p && !p.is_bound && p.slowdown != null && p.slowdown <= best * 1.005 ? "num best" : "num");
          return (
            <tr key={job.id}><td class="num">{job.id}</td><td>{plain(job.name)}</td><td class="num">{now ? duration(now.cpu_s * 1000) : "–"}</td><td>{now ? end(now) : "–"}</td>
              <td class={mark(now)}>{slowdown(now)}</td>{others.map((name) => <td key={name} class={mark(job.predicted[name])}>{slowdown(job.predicted[name])}</td>)}</tr>
          );
        })}</tbody>
      </table></div>
      {bound && <p class="muted">≥: it waits by polling, and how often is not seen while it waits busy; where its processes do not run together it may be much slower.</p>}
    </>
  );
}

function end({ ends_s, done }: Predicted): string {
  if (ends_s != null) return `in ${duration(ends_s * 1000)}`;
  return done == null ? "not known" : `later, ${Math.round(done * 100)} % done then`;
}

function Afterwards({ check }: { check: Check }) {
  const sign = (part: number) => `${part < 0 ? "−" : "+"}${Math.abs(part * 100).toFixed(1)} %`;
  return (
    <>
      <p>How right it was: CPU time of the predicted time.</p>
      <div class="scroll"><table class="check">
        <thead><tr><th class="num">Job</th><th>Name</th><th class="num">Predicted</th><th class="num">Found</th><th class="num">Difference</th></tr></thead>
        <tbody>{check.jobs.map(({ id, name, checked }) => (
          <tr key={id}><td class="num">{id}</td><td>{plain(name)}</td><td class="num">{checked.predicted_s.toFixed(2)} s</td>
            <td class="num">{checked.found_s.toFixed(2)} s</td><td class="num">{sign(checked.difference)}</td></tr>
        ))}</tbody>
      </table></div>
      {check.changed.map((what) => <p key={what} class="muted">Not counted, because something changed: {plain(what)}.</p>)}
    </>
  );
}
