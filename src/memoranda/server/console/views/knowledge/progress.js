// The uploads of a store, each with its bytes and what the server makes of it.
import { html, useSignal, useState } from "../../ui/core.js";
import { Badge } from "../../ui/badge.js";
import { bytesOf } from "../../ui/bytes.js";
import { Button, IconButton } from "../../ui/form.js";
import { VirtualList } from "../../ui/list.js";
import { t } from "../../strings.js";
import { cancelUpload, clearDone, isOpen, tryAgain, uploads } from "./uploads.js";

/** @typedef {import("./uploads.js").Upload} Upload */

const HEIGHT = 44;
const TALLEST = 5; // rows that are shown without scrolling

/** @param {{ store: string }} props */
export function Progress({ store }) {
  const all = useSignal(uploads).filter((one) => one.store === store);
  const [folded, setFolded] = useState(false);
  if (all.length === 0) return null;
  const open = all.filter(isOpen).length;
  const failed = all.filter((one) => one.state === "failed").length;
  const rows = [...all].sort((a, b) => rank(a) - rank(b));
  return html`<section class="uploads" aria-label=${t.knowledge.uploads}>
    <header><h2>${t.knowledge.uploads}</h2>
      <span class="quiet" role="status">${t.knowledge.uploaded(all.length - open, all.length)}</span>
      ${failed > 0 && html`<${Badge} tone="bad">${t.knowledge.failures(failed)}<//>`}
      <span class="spring" />
      ${open < all.length && html`<${Button} small kind="ghost" onClick=${() => clearDone(store)}>${t.knowledge.clearDone}<//>`}
      <${IconButton} icon=${folded ? "up" : "down"} label=${folded ? t.knowledge.unfold : t.knowledge.fold} expanded=${!folded} onClick=${() => setFolded(!folded)} /></header>
    ${!folded && html`<div class="uploads-list" style=${{ height: `${Math.min(rows.length, TALLEST) * HEIGHT}px` }}>
      <${VirtualList} label=${t.knowledge.uploads} rows=${rows} height=${HEIGHT} keyOf=${/** @param {Upload} one */ (one) => String(one.key)}
        row=${/** @param {Upload} one */ (one) => html`<${Row} one=${one} />`} /></div>`}
  </section>`;
}

/** Failures first, then what is under way. @param {Upload} one */
const rank = (one) => ["failed", "sending", "indexing", "waiting", "completed", "cancelled"].indexOf(one.state);

/** @param {{ one: Upload }} props */
function Row({ one }) {
  const { file, state, sent, error } = one;
  const share = file.size === 0 ? 1 : sent / file.size;
  /** @type {Record<string, "good" | "bad" | "accent" | "">} */
  const tones = { completed: "good", failed: "bad", indexing: "accent", sending: "accent" };
  return html`<div class="upload">
    <span class="upload-name" data-main tabIndex=${-1} title=${error ?? (one.path || file.name)}>${one.path || file.name}${error && html`<span class="wrong"> ${error}</span>`}</span>
    ${state === "sending" && html`<span class="bar" role="progressbar" aria-label=${file.name} aria-valuemin="0" aria-valuemax="100" aria-valuenow=${Math.round(share * 100)}>
      <span class="fill total" style=${{ width: `${share * 100}%` }} /></span>`}
    <span class="quiet upload-size">${state === "sending" ? `${bytesOf(sent)} / ${bytesOf(file.size)}` : bytesOf(file.size)}</span>
    <${Badge} tone=${tones[state] ?? ""}>${t.knowledge.uploadStates[state] ?? state}<//>
    <span class="upload-action">${(state === "waiting" || state === "sending") && html`<${IconButton} icon="close" label=${`${t.cancel}: ${file.name}`} onClick=${() => cancelUpload(one)} />`}
      ${(state === "failed" || state === "cancelled") && html`<${IconButton} icon="restore" label=${`${t.retry}: ${file.name}`} onClick=${() => tryAgain(one)} />`}</span>
  </div>`;
}
