// Moments: short and relative to read, whole in the title and for machines.
import { html } from "./core.js";
import { t } from "../strings.js";

const MINUTE = 60, HOUR = 60 * MINUTE, DAY = 24 * HOUR;

/** "26 Nov 2026", of this time zone or in UTC. @param {Date} moment @param {boolean} [utc] */
export function dayOf(moment, utc = false) {
  const [day, month, year] = utc
    ? [moment.getUTCDate(), moment.getUTCMonth(), moment.getUTCFullYear()]
    : [moment.getDate(), moment.getMonth(), moment.getFullYear()];
  return `${day} ${t.time.months[month]} ${year}`;
}

/** "26 Nov 2026, 09:30:00" of this time zone. @param {Date} moment */
function whole(moment) {
  const clock = [moment.getHours(), moment.getMinutes(), moment.getSeconds()];
  return `${dayOf(moment)}, ${clock.map((part) => String(part).padStart(2, "0")).join(":")}`;
}

/**
 * "3 hr. ago" within a week, then the day.
 * @param {Date} moment
 * @param {number} now milliseconds since 1970
 */
export function told(moment, now) {
  const seconds = (moment.getTime() - now) / 1000;
  const away = Math.abs(seconds);
  if (away < 45) return t.time.now;
  if (away > 7 * DAY) return dayOf(moment);
  const size = away >= DAY ? DAY : away >= HOUR ? HOUR : MINUTE;
  const n = Math.abs(Math.round(seconds / size));
  if (size === DAY && n === 1) return seconds < 0 ? t.time.yesterday : t.time.tomorrow;
  const unit = size === DAY ? t.time.days(n) : size === HOUR ? t.time.hours : t.time.minutes;
  return seconds < 0 ? t.time.past(n, unit) : t.time.future(n, unit);
}

/** @param {{ at: string | null, exact?: boolean }} props */
export function Time({ at, exact = false }) {
  if (at === null) return html`<span class="quiet">${t.time.unknown}</span>`;
  const moment = new Date(at);
  return html`<time dateTime=${at} title=${whole(moment)}>${exact ? whole(moment) : told(moment, Date.now())}</time>`;
}
