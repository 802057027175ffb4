// The simulator (crates/cosched-playground), JSON in, JSON out: as WebAssembly in the page, or where it has none by `cosched web`, which has sent the page.

import wasm from "playground.wasm";
import { ask } from "../api";

export interface Job { tasks: number; exec_ms: number; type: string; arrival_ms: number }
export interface Request { strategy: string; nodes: number; mpl: number; quantum_ms: number; jobs: Job[] }
/** CPU, begin, end, activity, job and task (-1: none's). */
export type Slice = [number, number, number, number, number, number];
export interface Picture {
  end_ms: number;
  jobs: { start_ms: number | null; finish_ms: number | null; nodes: number[] }[];
  slices: Slice[];
  rows: [number, number][];
  is_cut: boolean;
  /** Parts of the CPU time, by activity; the last is idle. */
  cpu: number[];
  context_switches: number;
}

interface Exports { memory: WebAssembly.Memory; push(byte: number): void; run(): number; answer(): number }

interface Answer { picture?: Picture; error?: string }

/** Whether the simulator is in the page. */
export const isHere = wasm.length > 0;
const ready = isHere ? WebAssembly.instantiate(wasm).then(({ instance }) => instance.exports as unknown as Exports) : null;

/** Simulates; an Error has the simulator's words. */
export async function simulate(request: Request): Promise<Picture> {
  const engine = await ready;
  const answer = engine ? run(engine, request) : await ask<Answer>("POST", "/ask/playground", request);
  if (!answer.picture) throw new Error(answer.error ?? "the simulator gave no answer");
  return answer.picture;
}

function run(engine: Exports, request: Request): Answer {
  new TextEncoder().encode(JSON.stringify(request)).forEach(engine.push);
  const length = engine.run();
  return JSON.parse(new TextDecoder().decode(new Uint8Array(engine.memory.buffer, engine.answer(), length))) as Answer;
}
