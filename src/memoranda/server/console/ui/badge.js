// Small marks: kinds, tags, counts.
import { html } from "./core.js";
import { t } from "../strings.js";

/** @typedef {import("../vendor/htm-preact.js").Child} Child */

/** @param {{ tone?: "" | "accent" | "good" | "warn" | "bad", title?: string, children?: Child }} props */
export function Badge({ tone = "", title, children }) {
  return html`<span class=${`badge ${tone}`} title=${title}>${children}</span>`;
}

/** The kind of a memory; each has a colour of its own. @param {{ kind: string }} props */
export function Kind({ kind }) {
  return html`<span class=${`badge kind kind-${kind}`}>${t.kinds[kind] ?? kind}</span>`;
}

/** @param {{ tags: string[], most?: number }} props */
export function Tags({ tags, most = 3 }) {
  if (tags.length === 0) return null;
  return html`<span class="tags">
    ${tags.slice(0, most).map((tag) => html`<span class="tag" key=${tag}>${tag}</span>`)}
    ${tags.length > most && html`<span class="tag" title=${tags.slice(most).join(", ")}>+${tags.length - most}</span>`}
  </span>`;
}

/** How likely the results answer. @param {{ level: string, probability: number }} props */
export function EvidenceBadge({ level, probability }) {
  const tone = level === "strong" ? "good" : level === "weak" ? "warn" : "";
  return html`<${Badge} tone=${tone} title=${t.evidence.hint(probability)}>${t.evidence.level[level]} ${Math.round(probability * 100)} %<//>`;
}
