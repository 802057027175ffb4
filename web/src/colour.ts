// A job's colour: eight that colour-blind people can distinguish (Okabe and Ito), then the same with
// stripes.

const PALETTE = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a800", "#7b6fd0"];

export function colour(id: number): string {
  return PALETTE[id % PALETTE.length] ?? "#888";
}

/** 0: plain; 1, 2: stripes in one or the other direction. */
export function stripes(id: number): number {
  return Math.floor(id / PALETTE.length) % 3;
}

/** The text colour that is readable on it. */
export function ink(id: number): string {
  return [1, 2, 3, 4, 6].includes(id % PALETTE.length) ? "#10151c" : "#ffffff";
}
