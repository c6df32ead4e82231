// What would be erased, by kind; and the receipt of what was.
import { html, useEffect, useRef } from "../../ui/core.js";
import { Kind } from "../../ui/badge.js";
import { Button, Copy } from "../../ui/form.js";
import { Pairs, Table } from "../../ui/table.js";
import { Time } from "../../ui/time.js";
import { address } from "../../router.js";
import { t } from "../../strings.js";

/**
 * @typedef {import("../../types.js").ForgetPreview["kinds"][number]} Group
 * @typedef {import("../../types.js").Receipt} Receipt
 */

/** @param {{ groups: Group[] }} props */
export function Groups({ groups }) {
  if (groups.length === 0) return html`<p class="quiet">${t.forget.nothing}</p>`;
  return html`<${Table} label=${t.forget.byKind} rows=${groups} keyOf=${/** @param {Group} group */ (group) => group.kind} columns=${[
    { title: t.forget.kindColumn, cell: /** @param {Group} group */ (group) => html`<${Kind} kind=${group.kind} />` },
    { title: t.forget.number, number: true, cell: /** @param {Group} group */ (group) => t.number(group.count) },
    { title: t.forget.example, wide: true, cell: examples },
  ]} />`;
}

/** @param {Group} group */
function examples({ count, ended, examples: shown }) {
  return html`<ul class="examples">${shown.map((memory) => html`<li key=${memory.id}><a href=${address("memories", { id: memory.id })}>${memory.content}</a></li>`)}</ul>
    ${count > shown.length && html`<p class="quiet">${t.forget.andMore(count - shown.length)}</p>`}
    ${ended > 0 && html`<p class="quiet">${t.forget.archived(ended)}</p>`}`;
}

/** @param {{ names: string[], total: number }} props */
export function Files({ names, total }) {
  return html`<ul class="examples">${names.map((name) => html`<li key=${name}>${name}</li>`)}</ul>
    ${total > names.length && html`<p class="quiet">${t.forget.andMore(total - names.length)}</p>`}`;
}

/** Numbers of rows by kind, as pairs to show. @param {Record<string, number>} counts @returns {[string, string][]} */
export const counted = (counts) => Object.entries(counts).filter(([, number]) => number > 0).map(([name, number]) => [t.forget.counts[name] ?? name, t.number(number)]);

/** @param {{ receipt: Receipt, onAgain: () => void }} props */
export function Given({ receipt, onAgain }) {
  const heading = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => heading.current?.focus(), []);
  const counts = counted(receipt.counts);
  return html`<section class="card receipt" aria-label=${t.forget.receipt}>
    <h2 tabIndex=${-1} ref=${heading}>${t.forget.receipt}</h2>
    <${Pairs} pairs=${[
      [t.forget.tombstone, html`<span class="mono id">${receipt.tombstone}</span>`],
      [t.forget.at, html`<${Time} exact at=${receipt.erased_at} />`],
    ]} />
    <h3>${t.forget.erased}</h3>
    ${counts.length ? html`<${Pairs} pairs=${counts} />` : html`<p class="quiet">${t.forget.none}</p>`}
    <p class="quiet receipt-note">${receipt.note}</p>
    <p class="quiet">${t.forget.keep}</p>
    <div class="actions"><${Button} onClick=${onAgain}>${t.forget.another}<//><${Copy} text=${JSON.stringify(receipt, null, 2)} label=${t.forget.copyReceipt} /></div>
  </section>`;
}
