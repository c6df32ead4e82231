// Addresses: /console/VIEW?filters. A view reads its filters from the query string, and writes them there.
import { signal, useSignal } from "./ui/core.js";

const BASE = "/console";

/** @typedef {{ view: string, rest: string, query: URLSearchParams }} Place */

/** @returns {Place} */
function here() {
  const [view = "", ...rest] = location.pathname.slice(BASE.length).split("/").filter(Boolean);
  return { view, rest: rest.map(decodeURIComponent).join("/"), query: new URLSearchParams(location.search) };
}

export const place = signal(here());
addEventListener("popstate", () => (place.value = here()));

/**
 * The address of a view.
 * @param {string} view
 * @param {import("./api.js").Query} [query]
 */
export function address(view, query = {}) {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== null && one !== undefined && one !== "" && one !== false) parameters.append(name, String(one));
    }
  }
  const text = parameters.toString();
  return `${BASE}/${view}${text ? `?${text}` : ""}`;
}

/**
 * Goes to an address of the console.
 * @param {string} to
 * @param {{ replace?: boolean }} [options]
 */
export function go(to, { replace = false } = {}) {
  if (replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  place.value = here();
}

/**
 * The address of the view that is shown with some filters changed; null and "" remove one.
 * @param {import("./api.js").Query} changes
 */
export function addressWith(changes) {
  const { view, query } = place.peek();
  /** @type {import("./api.js").Query} */
  const all = {};
  for (const name of new Set(query.keys())) all[name] = query.getAll(name);
  return address(view, { ...all, ...changes });
}

/**
 * Changes filters of the view that is shown; null and "" remove one.
 * @param {import("./api.js").Query} changes
 * @param {{ replace?: boolean }} [options]
 */
export function setQuery(changes, options = { replace: true }) {
  go(addressWith(changes), options);
}

/** The place that is shown; the component renders again when it changes. */
export const usePlace = () => useSignal(place);

/**
 * A click on a link of the console does not load the page again.
 * @param {MouseEvent} event
 */
export function followLink(event) {
  const target = event.target instanceof Element ? event.target.closest("a") : null;
  if (!target || event.defaultPrevented || event.button !== 0) return;
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || target.target || target.hasAttribute("download")) return;
  const url = new URL(target.href);
  if (url.origin !== location.origin || !(url.pathname === BASE || url.pathname.startsWith(`${BASE}/`))) return;
  event.preventDefault();
  go(url.pathname + url.search);
}
