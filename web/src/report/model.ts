// What a report says: the JSON in its file, as crates/cosched-report writes it. A number that is none is null.

export type Shape = "line" | "curve" | "steps" | "marks" | "rule" | "bars" | "lying" | "rects" | "clear";
export interface Axis { title: string; unit: string; log?: boolean; cut?: boolean; names?: string[] }
export interface Point { x: number | null; y: number | null; ci95?: number; end?: Pair; note?: string }
export interface Series { name: string; style: number; shape: Shape; points: Point[] }
export interface Chart { title: string; caption: string; x: Axis; y: Axis; series: Series[] }
export interface Table { summary?: string; titles: [title: string, isWord: boolean][]; rows: string[][] }
export interface Block { heading?: string; text?: string; table?: Table; chart?: Chart }
export interface Page { title: string; below: string; blocks: Block[] }
export type Pair = [number, number];
