// A job's colour: eight that colour-blind people can distinguish (six of Okabe and Ito's; the other two of theirs are black, and a yellow that
// white hides), then the same with stripes.

const PALETTE = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#808040", "#9059ff"];

export function colour(id: number): string {
  return PALETTE[id % PALETTE.length] ?? "#888";
}

/** 0: plain; 1, 2: stripes in one or the other direction. */
export function stripes(id: number): number {
  return Math.floor(id / PALETTE.length) % 3;
}

export type Rgb = [number, number, number];

/** The colour of a #rrggbb or rgb(r, g, b). */
export function rgb(css: string): Rgb {
  const parts = css.startsWith("#") ? [1, 3, 5].map((at) => parseInt(css.slice(at, at + 2), 16)) : (css.match(/[\d.]+/g) ?? []).map(Number);
  return [parts[0] ?? 0, parts[1] ?? 0, parts[2] ?? 0];
}

/** What is seen where a colour of this opacity lies on another. */
export function blend(over: Rgb, ground: Rgb, opacity: number): Rgb {
  const mix = (at: 0 | 1 | 2) => over[at] * opacity + ground[at] * (1 - opacity);
  return [mix(0), mix(1), mix(2)];
}

/** The contrast of two colours, 1 to 21 (WCAG 2). */
export function contrast(a: Rgb, b: Rgb): number {
  const linear = (part: number) => (part <= 10.31 ? part / 3294.6 : ((part / 255 + 0.055) / 1.055) ** 2.4);
  const light = ([red, green, blue]: Rgb) => 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue) + 0.05;
  const [x, y] = [light(a), light(b)];
  return Math.max(x, y) / Math.min(x, y);
}

/** The text colour that is readable on it: of pure black and white one has a contrast of at least 4.58 on any colour. */
export function ink(ground: Rgb): "#000000" | "#ffffff" {
  return contrast(ground, [0, 0, 0]) > contrast(ground, [255, 255, 255]) ? "#000000" : "#ffffff";
}
