// Strategies, kinds of jobs and examples, in words.

import type { Job } from "./engine";

export const STRATEGIES: [name: string, text: string][] = [
  ["GS", "Gang scheduling: all processes of a job run at the same time, in slots. What a gang leaves idle is lost."],
  ["paired-gang", "Gang scheduling, and the next gang may use the CPUs that the current one leaves idle."],
  ["soft-gang", "Gang scheduling, and all others may use what is idle, in the order of their rows."],
  ["Local", "No coscheduling: each CPU decides for itself, and a process that waits spins. This is the collapse."],
  ["SB", "Spin block: each CPU decides for itself; a process that waits spins for 200 µs and then gives the CPU away."],
  ["SY", "Spin yield: a process that waits spins for 200 µs, then lets one of the others run first."],
  ["DCS", "Demand-based: a message that arrives interrupts the CPU, and its receiver runs."],
  ["PB", "Periodic boost: every millisecond each CPU looks for a process with a message, and prefers it."],
  ["DCS-SB", "Demand-based coscheduling with spin block."],
  ["PB-SB", "Periodic boost with spin block."],
  ["DCS-SY", "Demand-based coscheduling with spin yield."],
  ["PB-SY", "Periodic boost with spin yield."],
  ["auto", "Each job is a gang or local, as what it is seen to do asks for."],
  ["live", "What cosched does on a real machine: gangs in slots, others in what they leave idle."],
  ["FCFS", "Space sharing: a job has its CPUs for itself, first come first served."],
  ["EASY", "Space sharing with backfilling: later jobs may go first if they delay nobody."],
];

export const TYPES: [name: string, text: string][] = [
  ["J5", "communicates 60 %, computes 35 %"],
  ["J1", "communicates 50 %, computes 35 %"],
  ["J3", "a third each: computes, does I/O, communicates"],
  ["J6", "computes 65 %, communicates 30 %"],
  ["J4", "computes 90 %"],
  ["J2", "does I/O 50 %, computes 35 %"],
];

const job = (tasks: number, type: string, exec_ms: number, arrival_ms = 0): Job => ({ tasks, type, exec_ms, arrival_ms });

export const EXAMPLES: [name: string, nodes: number, quantum_ms: number, jobs: Job[]][] = [
  ["A solver and a reader of files", 4, 20, [job(4, "J5", 60), job(4, "J2", 60)]],
  ["Two equal solvers (in step by chance)", 4, 20, [job(4, "J5", 60), job(4, "J5", 60)]],
  ["Holes in the matrix", 6, 20, [job(6, "J5", 60), job(3, "J1", 60), job(2, "J4", 40), job(4, "J3", 40, 10)]],
  ["Late and short", 4, 10, [job(4, "J4", 150), job(4, "J6", 100), job(2, "J4", 15, 30), job(1, "J4", 10, 45)]],
];

export const ACTIVITIES = ["computes", "handles a message", "spins", "switches", "interrupted", "schedules", "does I/O", "is blocked"];
