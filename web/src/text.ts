// Formats numbers and texts for people.

export function percent(part: number | undefined): string {
  return part === undefined ? "–" : `${Math.round(part * 100)} %`;
}

export function bytes(count: number | undefined): string {
  if (count === undefined) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let [value, unit] = [count, 0];
  while (value >= 1024 && unit < units.length - 1) [value, unit] = [value / 1024, unit + 1];
  return `${value >= 100 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

export function duration(ms: number): string {
  const s = Math.max(0, ms / 1000);
  if (s < 60) return `${s.toFixed(s < 10 ? 1 : 0)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

export function micros(us: number): string {
  return us < 1000 ? `${us.toFixed(0)} µs` : `${(us / 1000).toFixed(1)} ms`;
}

export function clock(unixMs: number): string {
  return new Date(unixMs).toLocaleTimeString(undefined, { hourCycle: "h23" });
}

/** A text chosen by a user, with control characters and characters that affect the direction of text made visible. */
export function plain(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g, (c) => `\\u{${c.codePointAt(0)?.toString(16)}}`);
}
