// What the home page shows: answers of several routes, each of which may have failed by itself.
import { get } from "../../api.js";
import { facetsOf } from "../../ui/facets.js";

/**
 * @template T
 * @typedef {import("../../api.js").Result<T>} Result
 */
/**
 * @template T
 * @typedef {{ data: T[], has_more: boolean }} Some
 */
/**
 * @typedef {import("../../types.js").VectorStore} VectorStore
 * @typedef {import("../../types.js").FileStatus} FileStatus
 * @typedef {{
 *   facets: Result<import("../../types.js").Facets>, facts: Result<import("../../types.js").Facets>, stores: Result<Some<VectorStore>>, sessions: Result<Some<import("../../types.js").Session>>,
 *   models: Result<{ data: import("../../types.js").Model[] }>, ready: Result<{ ready: boolean }>,
 *   jobs: Result<{ data: import("../../types.js").Job[] }> | null, switches: Result<import("../../types.js").Switches> | null,
 * }} Overview `jobs` and `switches` are null for keys that may not see them.
 */

/**
 * @param {boolean} admin whether the key may see jobs and switches
 * @param {AbortSignal} abort
 * @returns {Promise<Result<Overview>>}
 */
export async function overviewOf(admin, abort) {
  const [facets, facts, stores, sessions, models, ready, jobs, switches] = await Promise.all([
    facetsOf({}, abort), facetsOf({ kinds: ["fact"] }, abort),
    /** @type {Promise<Result<Some<VectorStore>>>} */ (get("/v1/vector_stores", { query: { limit: 100 }, abort })),
    /** @type {Promise<Result<Some<import("../../types.js").Session>>>} */ (get("/v1/sessions", { query: { limit: 100 }, abort })),
    /** @type {Promise<Result<{ data: import("../../types.js").Model[] }>>} */ (get("/v1/models", { abort })),
    /** @type {Promise<Result<{ ready: boolean }>>} */ (get("/readyz", { abort })),
    admin ? /** @type {Promise<Result<{ data: import("../../types.js").Job[] }>>} */ (get("/v1/jobs", { query: { limit: 1000 }, abort })) : null,
    admin ? /** @type {Promise<Result<import("../../types.js").Switches>>} */ (get("/v1/admin/switches", { abort })) : null,
  ]);
  return facets.ok ? { ok: true, data: { facets, facts, stores, sessions, models, ready, jobs, switches } } : facets;
}

/** Whether nothing is stored that the key may see. @param {Overview} overview */
export function isEmpty({ facets, stores, sessions }) {
  return facets.ok && facets.data.total === 0 && stores.ok && stores.data.data.length === 0 && sessions.ok && sessions.data.data.length === 0;
}

/** How many files of all stores have a status. @param {VectorStore[]} stores @param {FileStatus | "total"} status */
export const filesOf = (stores, status) => stores.reduce((n, store) => n + store.file_counts[status], 0);

/** Whether some of the numbers change by themselves: files are being indexed, or jobs run. @param {Overview} overview */
export function busy({ stores, jobs }) {
  return (stores.ok && filesOf(stores.data.data, "in_progress") > 0) || (jobs?.ok === true && jobs.data.data.some(({ state }) => state === "queued" || state === "running"));
}
