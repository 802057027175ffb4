// A table, or one that opens at a click and has no rows until then.

import { useState } from "preact/hooks";
import type { Table } from "./model";
import { plain } from "../text";

/** Words longer than this are broken into lines. */
const LONG = 60;

export function TableView({ table }: { table: Table }) {
  const [open, setOpen] = useState(table.summary === undefined);
  const rows = open && (
    <div class="scroll" tabIndex={0}><table>
      <thead><tr>{table.titles.map(([title, isWord], n) => <th key={n} class={isWord ? "" : "num"} scope="col">{plain(title)}</th>)}</tr></thead>
      <tbody>{table.rows.map((row, n) => (
        <tr key={n}>{row.map((text, column) => <td key={column} class={!table.titles[column]?.[1] ? "num" : text.length > LONG ? "long" : ""}>{plain(text)}</td>)}</tr>
      ))}</tbody>
    </table></div>
  );
  if (table.summary === undefined) return rows;
  return <details onToggle={(e) => setOpen(e.currentTarget.open)}><summary>{plain(table.summary)} ({table.rows.length} rows)</summary>{rows}</details>;
}
