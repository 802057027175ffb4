// Questions about a trace of two gangs in turn, and of a job that waits, to Perfetto's trace processor:
//   node questions.mjs ENGINE TRACE FACTS      what is true, as JSON: tests/monitoring/run
// Exit codes: 0 the answers are right, 1 they are not.
import assert from "node:assert/strict";
import fs from "node:fs";
import { open } from "./processor.mjs";

const [engine, file, text] = process.argv.slice(2);
const facts = JSON.parse(text);
const processor = await open(engine);
processor.load(fs.readFileSync(file));
const begin_s = JSON.parse(fs.readFileSync(file)).otherData.begin_unix_us / 1e6;
const errors = processor.query("select name, value from stats where severity in ('error', 'data_loss') and value > 0");
assert.deepEqual(errors, [], "the trace is read without errors");

// Where each slice is: the lane's process, and its thread.
const lanes = `
  select slice.*, thread.name as lane, thread.tid as tid, process.name as pane
  from slice join thread_track on slice.track_id = thread_track.id join thread using (utid) join process using (upid)`;

// How many slots are there on each CPU, and how long are they?
const slots = processor.query(`
  select lane, count(*) as slots, max(dur) / 1e6 as longest_ms, sum(dur) / 1e9 as all_s,
    sum(abs(dur / 1e6 - ${facts.slot_ms}) < 0.001) as whole, count(distinct name) as jobs, min(ts) / 1e9 as from_s
  from (${lanes}) where category = 'slot' group by lane order by tid`);
assert.equal(slots.length, facts.cpus, "a lane for each CPU");
for (const lane of slots) {
  assert.match(lane.lane, /^cpu\d+$/);
  assert.equal(lane.jobs, 2);
  assert.ok(Math.abs(lane.longest_ms - facts.slot_ms) < 0.001, JSON.stringify(lane));
  // Only those at the ends of the trace and where the plan changed are cut.
  assert.ok(lane.slots - lane.whole <= 8, JSON.stringify(lane));
  const expected = (facts.seconds * 1000) / facts.slot_ms;
  assert.ok(Math.abs(lane.slots - expected) <= 0.05 * expected + 8, JSON.stringify(lane));
  assert.ok(Math.abs(lane.all_s + lane.from_s - facts.seconds) < 0.05 * facts.seconds, JSON.stringify(lane));
}

// How often was there a switch? The row changes where another job follows on a CPU; the daemon has counted them itself, in the trace and beside it.
const [{ changes }] = processor.query(`
  with slots as (select ts, name, lag(name) over (partition by tid order by ts) as before from (${lanes}) where category = 'slot')
  select count(distinct ts) as changes from slots where name != before`);
const [{ counted, meanwhile: changes_counted }] = processor.query(`
  with samples as (select ts, value, lead(ts) over (order by ts) as until from counter join counter_track as track
    on counter.track_id = track.id where track.name glob 'switches/s*'),
  slots as (select ts, name, lag(name) over (partition by tid order by ts) as before from (${lanes}) where category = 'slot')
  select sum(value * (until - ts) / 1e9) as counted, (select count(distinct slots.ts) from slots where name != before
    and slots.ts >= (select min(ts) from samples) and slots.ts < (select max(ts) from samples)) as meanwhile
  from samples where until is not null`);
assert.ok(changes > 10 && counted > 10, `${changes} changes, ${counted} counted`);
assert.ok(Math.abs(changes_counted - counted) <= 0.05 * counted + 4, `${changes_counted} changes, ${counted} counted in the trace`);
assert.ok(changes <= facts.switches + 3, `${changes} changes, and the daemon counted ${facts.switches} switches before and after`);

// When did the second job run and stop?
const states = processor.query(`
  select name, ts / 1e9 as from_s, (ts + dur) / 1e9 as to_s from (${lanes})
  where category = 'state' and pane = 'Jobs' and tid = ${facts.jobs[1]} order by ts`);
assert.deepEqual(states.map((state) => state.name), ["running", "suspended", "running"]);
const [, stopped] = states;
for (const [is, was] of [[stopped.from_s, facts.suspended_unix_s], [stopped.to_s, facts.resumed_unix_s]]) {
  const late_s = is - (was - begin_s);
  assert.ok(late_s > -0.2 && late_s < 0.8, `${late_s} s after it was asked for: ${JSON.stringify(states)}`);
}
const [{ meanwhile }] = processor.query(`
  select count(*) as meanwhile from (${lanes}) where category = 'slot' and name = '${facts.jobs[1]} second'
  and ts / 1e9 > ${stopped.from_s + 0.3} and ts / 1e9 < ${stopped.to_s - 0.1}`);
assert.equal(meanwhile, 0, "slots of the job while it is suspended");
const [{ events }] = processor.query(`select count(*) as events from (${lanes}) where category = 'event' and name in ('suspended', 'resumed')`);
assert.equal(events, 2);

// What did each gang use, while it is said to run and while it is said to be stopped? Of a gang's counters the spans are those of its samples.
const counted_of = (what, job) => `(select ts, value, lead(ts) over (order by ts) as until from counter join counter_track as track
  on counter.track_id = track.id where track.name glob '${what} ${job} *')`;
for (const [place, job] of facts.jobs.entries()) {
  const spans = `(select name, ts, ts + dur as until from (${lanes}) where category = 'gang' and pane = 'Gangs: run and stop' and tid = ${job})`;
  const kinds = processor.query(`select name, count(*) as often, sum(until - ts) / 1e9 as all_s from ${spans} group by name order by name`);
  assert.deepEqual(kinds.map(({ name }) => name), place ? ["runs", "stopped", "suspended"] : ["runs", "stopped"], JSON.stringify(kinds));
  const overlap = processor.query(`select a.ts from ${spans} as a join ${spans} as b on a.ts < b.ts and b.ts < a.until`);
  assert.deepEqual(overlap, [], "a gang does one thing at a time");
  const [{ used_s, runs_s }] = processor.query(`
    with used as ${counted_of("CPUs used by", job)}, whole as (select min(ts) as low, max(ts) as high from used)
    select (select sum(value * (until - ts)) / 1e9 from used where until is not null) as used_s,
      sum(min(until, high) - max(ts, low)) / 1e9 as runs_s from ${spans}, whole where name = 'runs' and until > low and ts < high`);
  // It has one process that computes: what it uses beyond the time in which it runs it would have used while it was stopped.
  assert.ok(used_s <= 1.1 * runs_s + 0.1 && used_s >= 0.3 * runs_s, `job ${job} used ${used_s} s of ${runs_s} s: ${JSON.stringify(kinds)}`);
}

// How long did the waiting job spin, and how long did it block?
const wait_s = (what) => processor.query(`
  select sum(value * (until - ts)) / 1e9 as amount, (max(until) - min(ts)) / 1e9 as all_s from ${counted_of(what, facts.poller)} where until is not null`)[0];
const [spun, blocked, waits] = ["spinning in", "blocked in", "waits/s of"].map(wait_s);
assert.ok(waits.amount > 50, `${waits.amount} waits`);
assert.ok(spun.amount > 0 && blocked.amount > spun.amount, `${spun.amount} s spun, ${blocked.amount} s blocked`);
assert.ok(spun.amount + blocked.amount < 1.1 * blocked.all_s + 0.1, "it waits no longer than it lives: it has one thread that waits");
assert.deepEqual(processor.query(`select name from counter_track where name glob 'blocked in ${facts.jobs[0]} *' and
  exists (select 1 from counter where counter.track_id = counter_track.id and value > 0)`), [], "what computes does not wait");

console.log(`Perfetto: ${waits.amount.toFixed(0)} waits, ${spun.amount.toFixed(2)} s of them spun, ${blocked.amount.toFixed(2)} s blocked`);
console.log(`Perfetto: ${slots[0].slots} slots on ${slots.length} CPUs, ${changes} switches (${changes_counted} while the daemon counted ${counted.toFixed(0)}), ` +
  `stopped for ${(stopped.to_s - stopped.from_s).toFixed(2)} s`);
