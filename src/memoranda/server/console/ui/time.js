// Moments: short and relative to read, whole in the title and for machines.
import { html } from "./core.js";
import { t } from "../strings.js";

/** @type {[Intl.RelativeTimeFormatUnit, number][]} */
const UNITS = [["minute", 60], ["hour", 3600], ["day", 86400]];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" });
const whole = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });

/**
 * "3 hr. ago" within a week, then the day.
 * @param {Date} moment
 * @param {number} now milliseconds since 1970
 */
export function told(moment, now) {
  const seconds = (moment.getTime() - now) / 1000;
  const away = Math.abs(seconds);
  if (away < 45) return t.time.now;
  if (away > 7 * 86400) return day.format(moment);
  const [unit, size] = [...UNITS].reverse().find(([, one]) => away >= one) ?? ["minute", 60];
  return relative.format(Math.round(seconds / size), unit);
}

/** @param {{ at: string | null, exact?: boolean }} props */
export function Time({ at, exact = false }) {
  if (at === null) return html`<span class="quiet">${t.time.unknown}</span>`;
  const moment = new Date(at);
  return html`<time dateTime=${at} title=${whole.format(moment)}>${exact ? whole.format(moment) : told(moment, Date.now())}</time>`;
}
