// A table of values; a row may be a link.
import { html } from "./core.js";

/** @typedef {import("../vendor/htm-preact.js").Child} Child */

/**
 * @template R
 * @param {{ label: string, columns: { title: string, cell: (row: R) => Child, number?: boolean, wide?: boolean }[], rows: R[], keyOf: (row: R) => string }} props
 */
export function Table({ label, columns, rows, keyOf }) {
  return html`<div class="table-wrap" role="region" aria-label=${label} tabIndex=${0}>
    <table>
      <thead><tr>${columns.map((column) => html`<th key=${column.title} scope="col" class=${column.number ? "number" : ""}>${column.title}</th>`)}</tr></thead>
      <tbody>${rows.map((row) => html`<tr key=${keyOf(row)}>
        ${columns.map((column) => html`<td key=${column.title} class=${`${column.number ? "number" : ""} ${column.wide ? "wide" : ""}`}>${column.cell(row)}</td>`)}
      </tr>`)}</tbody>
    </table>
  </div>`;
}

/** Names and values, one pair a line; what is null is left out. @param {{ pairs: [string, Child][] }} props */
export function Pairs({ pairs }) {
  const there = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return html`<dl class="pairs">${there.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}
