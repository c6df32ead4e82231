/**
 * A JSON value as the memories that hold it: one, or several if it is long.
 *
 * @module
 */
import { randomUUID } from 'node:crypto';

import { memoryId, OWN } from './entries.js';

/** @typedef {import('../types.js').Schemas} Schemas */
/** @typedef {Schemas['Memory']} Memory */
/** @typedef {Schemas['NewMemoryBody']} NewMemory */
/** @typedef {import('./filters.js').Filter} Filter */
/** @typedef {'asc' | 'desc'} Order */

/**
 * A value to write.
 * @typedef {object} Draft
 * @property {string} id
 * @property {string} source Names its kind.
 * @property {string} channel
 * @property {string | null} user
 * @property {string | null} session
 * @property {Date} at Its moment, by which records are ordered.
 * @property {unknown} value JSON; a `Date` in it becomes a text.
 * @property {string} [text] The content of its memory.
 * @property {Record<string, string | number | boolean>} [fields] Small values to filter by.
 */

const VALUE = `${OWN}value`;
const PARTS = `${OWN}parts`;
const COUNT = `${OWN}count`;
const TEXT = 'A record that is not searched.'; // of every such memory: one vector serves them all
const PART = 20_000; // UTF-16 units of a part: at three bytes each they fit `limits.max_metadata_bytes`
const BATCH = 500; // memories in a request

/**
 * The memories of a value, that of the record itself last.
 *
 * @param {Draft} draft
 * @returns {NewMemory[]}
 */
export function rowsOf({ id, source, channel, user, session, at, value, text = TEXT, fields = {} }) {
  const place = { kind: /** @type {const} */ ('item'), user_id: user, session_id: session, channel_id: channel };
  const head = { ...place, id, content: text, source, occurred_at: at.toISOString() };
  const pieces = piecesOf(JSON.stringify(value));
  if (pieces.length === 1) return [{ ...head, metadata: { ...fields, [VALUE]: pieces[0] } }];
  const name = randomUUID();
  const parts = pieces.map((piece, i) => ({
    ...place, id: memoryId(name, String(i)), content: TEXT, source: name, metadata: { [VALUE]: piece },
  }));
  return [...parts, { ...head, metadata: { ...fields, [PARTS]: name, [COUNT]: pieces.length } }];
}

/**
 * Where the value of a record is: `source` and number of its parts; null if it is in its own memory.
 *
 * @param {Memory} memory
 */
export function partsOf({ metadata }) {
  if (!(PARTS in metadata)) return null;
  return { source: /** @type {string} */ (metadata[PARTS]), count: /** @type {number} */ (metadata[COUNT]) };
}

/**
 * The value in a memory, or in all parts of one.
 *
 * @param {Memory[]} memories
 * @returns {any}
 */
export function valueIn(memories) {
  return JSON.parse(memories.map(({ metadata }) => metadata[VALUE]).join(''));
}

/**
 * The metadata of a record apart from its value.
 *
 * @param {Record<string, unknown>} metadata
 */
export function withoutValue(metadata) {
  return Object.fromEntries(Object.entries(metadata).filter(([name]) => ![VALUE, PARTS, COUNT].includes(name)));
}

/**
 * The memory of the record itself.
 *
 * @param {NewMemory[]} rows
 * @returns {NewMemory & { id: string }}
 */
export function headOf(rows) {
  return /** @type {NewMemory & { id: string }} */ (rows.at(-1));
}

/**
 * The memories of records in batches of at most 500; those of one record stay together.
 *
 * @param {NewMemory[][]} records
 */
export function batches(records) {
  /** @type {NewMemory[][][]} */
  const made = [];
  let size = BATCH;
  for (const rows of records) {
    size += rows.length;
    if (size > BATCH) made.push([]);
    if (size > BATCH) size = rows.length;
    made.at(-1)?.push(rows);
  }
  return made;
}

/**
 * The moment of a record.
 *
 * @param {Memory} memory
 */
export function momentOf({ occurred_at: at }) {
  return new Date(at);
}

/**
 * The records whose moment compares so with another.
 *
 * @param {string} type
 * @param {Date} at
 * @returns {Filter}
 */
export function during(type, at) {
  return { type, key: '$occurred_at', value: at.getTime() * 1000 };
}

/**
 * Memories by their moments; those of the same moment stay in their order.
 *
 * @param {Memory[]} rows
 * @param {Order} order
 */
export function sorted(rows, order) {
  const sign = order === 'desc' ? -1 : 1;
  return [...rows].sort((one, other) => sign * (momentOf(one).getTime() - momentOf(other).getTime()));
}

/** @param {string} text */
function piecesOf(text) {
  const pieces = [];
  for (let start = 0, end = 0; start < text.length; start = end) {
    end = Math.min(start + PART, text.length);
    const isHigh = end < text.length && (text.charCodeAt(end - 1) & 0xfc00) === 0xd800; // the first half of a character
    if (isHigh) end -= 1;
    pieces.push(text.slice(start, end));
  }
  return pieces;
}
