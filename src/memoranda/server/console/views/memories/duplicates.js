// Near-duplicates: pairs of memories of one scope that say nearly the same, side by side.
import { html, useLoaded, useMemo, useRef, useState } from "../../ui/core.js";
import { get, part, post } from "../../api.js";
import { Kind } from "../../ui/badge.js";
import { Button } from "../../ui/form.js";
import { Confirm } from "../../ui/dialog.js";
import { Empty, Loaded } from "../../ui/states.js";
import { Time } from "../../ui/time.js";
import { address } from "../../router.js";
import { t } from "../../strings.js";
import { deleteAll, setArchived } from "./changes.js";
import { selectionOf } from "./filters.js";
import { unlike } from "./marked.js";
import { scopeOf } from "./scope.js";

/**
 * @typedef {import("../../types.js").Memory} Memory
 * @typedef {import("../../types.js").NearDuplicate} NearDuplicate
 * @typedef {{ pairs: NearDuplicate[], compared: number, last: string | null, more: boolean }} Found
 */

const STEP = 20; // pairs that are shown at first, and that a click adds
const ASKED = 200; // pairs of one request, which compares the newest memories, or the next older ones
/** @type {Found} */
const NOTHING = { pairs: [], compared: 0, last: null, more: false };

/** @param {{ query: URLSearchParams, children: import("../../vendor/htm-preact.js").Child }} props */
export function Duplicates({ query, children }) {
  const selection = useMemo(() => selectionOf(query), [query.toString()]);
  return html`<div class="page scrolls">
    <header class="page-head">${children}</header>
    <${Pairs} key=${JSON.stringify(selection)} selection=${selection} />
  </div>`;
}

/** @param {{ selection: import("./filters.js").Selection }} props */
function Pairs({ selection }) {
  const found = useRef(NOTHING);
  const [after, setAfter] = useState(/** @type {string | null} */ (null));
  const [shown, setShown] = useState(STEP);
  const [gone, setGone] = useState(/** @type {ReadonlySet<string>} */ (new Set()));
  const loaded = useLoaded(`after ${after}`, async (abort) => {
    /** @type {import("../../api.js").Result<import("../../types.js").NearDuplicatePage>} */
    const page = await post("/v1/memories/near_duplicates", { limit: ASKED, after, ...selection }, { abort });
    if (!page.ok) return page;
    const { data, compared, last_id: last, has_more: more } = page.data;
    const { current: before } = found;
    if (!abort.aborted) found.current = { pairs: [...before.pairs, ...data], compared: before.compared + compared, last, more };
    return { ok: true, data: found.current };
  });
  const { pairs, compared, last, more } = loaded.data ?? NOTHING;
  const here = pairs.filter((pair) => !gone.has(pair.first) && !gone.has(pair.second));
  /** @param {string[]} ids @param {boolean} away */
  const changed = (ids, away) => setGone((before) => new Set(away ? [...before, ...ids] : [...before].filter((id) => !ids.includes(id))));
  return html`<${Loaded} of=${loaded} lines=${6}>${() => html`
    ${here.length === 0
      ? html`<${Empty} title=${more ? t.memories.noDuplicatesYetTitle : t.memories.noDuplicatesTitle} body=${t.memories.noDuplicatesBody} />`
      : html`<p class="quiet">${t.memories.duplicatesBody}</p>
        <ul class="duplicates" aria-label=${t.memories.duplicates}>
          ${here.slice(0, shown).map((pair) => html`<li class="card" key=${`${pair.first} ${pair.second}`}><${Pair} pair=${pair} onChanged=${changed} /></li>`)}
        </ul>`}
    <div class="actions">
      ${here.length > shown && html`<${Button} onClick=${() => setShown(shown + STEP)}>${t.memories.moreDuplicates}<//>`}
      ${more && html`<${Button} busy=${loaded.loading} onClick=${() => setAfter(last)}>${t.memories.olderDuplicates}<//>`}
      <span class="quiet" role="status">${more ? t.memories.comparedNewest(compared) : t.memories.comparedAll(compared)}</span>
    </div>`}<//>`;
}

/** @typedef {(ids: string[], away: boolean) => void} Changed */

/** @param {{ pair: NearDuplicate, onChanged: Changed }} props */
function Pair({ pair, onChanged }) {
  const loaded = useLoaded(`${pair.first} ${pair.second}`, async (abort) => {
    const [first, second] = await Promise.all([pair.first, pair.second].map(
      (id) => /** @type {Promise<import("../../api.js").Result<Memory>>} */ (get(`/v1/memories/${part(id)}`, { abort })),
    ));
    if (!first?.ok) return /** @type {import("../../api.js").Result<[Memory, Memory]>} */ (first);
    if (!second?.ok) return /** @type {import("../../api.js").Result<[Memory, Memory]>} */ (second);
    return { ok: true, data: /** @type {[Memory, Memory]} */ ([first.data, second.data]) };
  });
  const alike = pair.reason === "cosine" && pair.cosine !== null ? pair.cosine : pair.jaccard;
  return html`<${Loaded} of=${loaded}>${/** @param {[Memory, Memory]} both */ ([first, second]) => html`
    <h2>${t.memories.alike(alike)} <span class="quiet">${scopeOf(first)}</span></h2>
    <div class="duplicate-sides">
      <${Side} memory=${first} other=${second} onChanged=${onChanged} />
      <${Side} memory=${second} other=${first} onChanged=${onChanged} />
    </div>`}<//>`;
}

/** @param {{ memory: Memory, other: Memory, onChanged: Changed }} props */
function Side({ memory, other, onChanged }) {
  const [asking, setAsking] = useState(false);
  return html`<article aria-label=${memory.content.slice(0, 80)}>
    <div class="content-text">${unlike(memory.content, other.content)}</div>
    <div class="memory-meta"><${Kind} kind=${memory.kind} /><${Time} at=${memory.occurred_at} />
      <a href=${address("memories", { id: memory.id })}>${t.memories.open}</a></div>
    <div class="actions">
      <${Button} small icon="archive" onClick=${() => setArchived([memory], true, (all) => onChanged(all.map((one) => one.id), all.some((one) => one.archived_at !== null)))}>${t.memories.archive}<//>
      <${Button} small kind="danger" icon="delete" onClick=${() => setAsking(true)}>${t.memories.delete}<//>
    </div>
    ${asking && html`<${Confirm} title=${t.memories.deleteTitle(1)} body=${t.memories.deleteBody} action=${t.memories.delete}
      onConfirm=${() => deleteAll([memory], (ids) => onChanged(ids, true))} onClose=${() => setAsking(false)} />`}
  </article>`;
}
