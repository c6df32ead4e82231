// How many memories of a selection there are by kind, scope, source, tag and month.
import { post } from "../api.js";
import { t } from "../strings.js";

const VALUES = 100; // of each facet
const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone; // of the days of the filters, so of the months too

/** What a selection has, counted. @param {object} selection @param {AbortSignal} abort @returns {Promise<import("../api.js").Result<import("../types.js").Facets>>} */
export const facetsOf = (selection, abort) => post("/v1/memories/facets", { ...selection, limit: VALUES, time_zone: ZONE }, { abort });

/** Values as a field suggests them. @param {import("../types.js").FacetValue[] | undefined} values */
export const choicesOf = (values) => values?.map(({ value, count }) => ({ value, label: t.memories.counted(value, count) })) ?? [];
