// The position of the clock in a plan. The row at any moment follows from the plan, so no request is needed at a slot's
// boundary.

import type { Plan } from "./api";

/** For each row, the share of the time from `from` to `to` (ms since the epoch) in which it was the current one, 0 to 1. */
export function presence(plan: Plan, from: number, to: number): number[] {
  const { turns, rows } = plan.matrix;
  const parts = rows.map(() => 0);
  const slot = plan.slot_length_ns / 1e6;
  const begin = from - plan.epoch_unix_ns / 1e6;
  const end = to - plan.epoch_unix_ns / 1e6;
  if (turns.length === 0 || !(end > begin) || !(slot > 0)) return parts;
  for (let k = Math.floor(begin / slot); k * slot < end; k++) {
    const row = turns[((k % turns.length) + turns.length) % turns.length] ?? 0;
    const within = Math.min(end, (k + 1) * slot) - Math.max(begin, k * slot);
    parts[row] = (parts[row] ?? 0) + within / (end - begin);
  }
  return parts;
}

/** The position in the cycle, 0 to 1. */
export function phase(plan: Plan, at: number): number {
  const cycle = (plan.slot_length_ns / 1e6) * Math.max(1, plan.matrix.turns.length);
  const since = (at - plan.epoch_unix_ns / 1e6) % cycle;
  return (since < 0 ? since + cycle : since) / cycle;
}
