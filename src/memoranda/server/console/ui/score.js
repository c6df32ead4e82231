// Bars for scores, and what an explanation of the API says about a rank.
import { html } from "./core.js";
import { Icon } from "./icons.js";
import { t } from "../strings.js";

/** @typedef {import("../types.js").Explanation} Explanation */

/** A share of one as a bar, with its number. @param {{ label: string, value: number | null, tone?: string, hint?: string, compact?: boolean }} props */
export function ScoreBar({ label, value, tone = "", hint, compact = false }) {
  const share = Math.max(0, Math.min(1, value ?? 0));
  const number = value === null ? "–" : value.toFixed(compact ? 2 : 3);
  return html`<div class=${`score ${compact ? "compact" : ""}`} title=${hint ? `${label}: ${hint}` : label}>
    <span class="score-label">${label}</span>
    <span class="bar" aria-hidden="true"><span class=${`fill ${tone}`} style=${{ width: `${share * 100}%` }} /></span>
    <span class="score-number">${number}</span>
  </div>`;
}

/** How far a hit's score moved it among the candidates. @param {{ explanation: Explanation }} props */
export function RankShift({ explanation: { rank_before: before, rank_after: after } }) {
  if (!before || before === after) return null;
  const up = before > after;
  const says = up ? t.scores.rankUp(before - after) : t.scores.rankDown(after - before);
  return html`<span class=${`shift ${up ? "up" : "down"}`} title=${says}>
    <${Icon} name=${up ? "up" : "down"} />${Math.abs(before - after)}<span class="hidden"> ${says}</span>
  </span>`;
}

/** The parts of a hit's score, for a row of a list. @param {{ score: number, explanation: Explanation | null }} props */
export function HitScores({ score, explanation }) {
  return html`<div class="hit-scores">
    <${ScoreBar} compact label=${t.scores.score} value=${score} tone="total" />
    ${explanation && html`
      <${ScoreBar} compact label=${t.scores.vector} value=${explanation.dense_normalised} tone="vector" hint=${t.scores.vectorHint(explanation.dense_rank, explanation.weights.dense ?? 0)} />
      <${ScoreBar} compact label=${t.scores.keyword} value=${explanation.words_normalised} tone="keyword" hint=${t.scores.vectorHint(explanation.words_rank, explanation.weights.words ?? 0)} />`}
  </div>`;
}

/** All parts of a hit's score, stage by stage. @param {{ score: number, explanation: Explanation }} props */
export function Explained({ score, explanation }) {
  const { weights, added, factors } = explanation;
  const most = Math.max(1, ...Object.values(added).map(Math.abs));
  return html`<div class="explained">
    <${ScoreBar} label=${t.scores.vector} value=${explanation.dense_normalised} tone="vector" hint=${t.scores.vectorHint(explanation.dense_rank, weights.dense ?? 0)} />
    <${ScoreBar} label=${t.scores.keyword} value=${explanation.words_normalised} tone="keyword" hint=${t.scores.vectorHint(explanation.words_rank, weights.words ?? 0)} />
    <${ScoreBar} label=${t.scores.scopeWeight} value=${explanation.scope_weight} hint=${explanation.scope ?? undefined} />
    ${Object.entries(added).length > 0 && html`
      <h3>${t.scores.preset(explanation.preset ?? "")}</h3>
      ${Object.entries(added).map(([name, value]) => html`<${Signed} key=${name} label=${name} value=${value} most=${most} />`)}`}
    ${Object.entries(factors).map(([name, value]) => html`<div class="score" key=${name}>
      <span class="score-label">${t.scores.factor} ${name}</span><span class="bar-space" /><span class="score-number">× ${value.toFixed(3)}</span>
    </div>`)}
    <div class="score strong">
      <span class="score-label">${t.scores.score}</span>
      <span class="bar" aria-hidden="true"><span class="fill total" style=${{ width: `${Math.max(0, Math.min(1, score)) * 100}%` }} /></span>
      <span class="score-number">${score.toFixed(3)}</span>
    </div>
    <p class="quiet rank-line">${t.scores.rank} ${t.scores.rankChange(explanation.rank_before, explanation.rank_after)} <${RankShift} explanation=${explanation} />
      ${explanation.model_rank !== null && html` · ${t.scores.modelRank} ${explanation.model_rank}`}</p>
    ${explanation.formula && html`<p class="formula mono">${explanation.formula}</p>`}
  </div>`;
}

/** A term of the sum; below zero it grows to the left. @param {{ label: string, value: number, most: number }} props */
function Signed({ label, value, most }) {
  const share = Math.min(1, Math.abs(value) / most) * 50;
  const style = { width: `${share}%`, [value < 0 ? "right" : "left"]: "50%" };
  return html`<div class="score">
    <span class="score-label">${label}</span>
    <span class="bar signed" aria-hidden="true"><span class=${`fill ${value < 0 ? "minus" : "plus"}`} style=${style} /></span>
    <span class="score-number">${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(3)}</span>
  </div>`;
}
