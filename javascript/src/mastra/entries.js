/**
 * Vectors as memories of kind `item`, which searches of memories do not see.
 *
 * @module
 */
import { createHash } from 'node:crypto';

/** @typedef {import('../types.js').Schemas} Schemas */
/** @typedef {Record<string, any>} Metadata */
/** @typedef {Pick<Schemas['Memory'], 'id' | 'content' | 'metadata' | 'created_at'> & { embeddings?: { vector: string }[] }} Row */
/** @typedef {(at: number, field: 'id' | 'vector' | 'metadata') => string} Naming The caller's name for a field of an entry. */

export const OWN = 'mastra.'; // begins the metadata keys that are not the caller's
const RESERVED = 'extracted_by'; // a metadata key that has a meaning in facts
const FIELD = /^memories\[(\d+)\]\.(embedding|content|metadata(?:\.mastra\.(?:id|rest))?)/;

/**
 * The id of the memory for an entry that these parts name.
 *
 * @param {...string} parts
 */
export function memoryId(...parts) {
  return `item_${createHash('sha256').update(JSON.stringify(['mastra', ...parts])).digest('hex').slice(0, 40)}`;
}

/**
 * The metadata of a memory for that of a vector. Keys that the server refuses lie in one of its own.
 *
 * @param {string} id
 * @param {Metadata} metadata
 * @returns {Metadata}
 */
export function wrapped(id, metadata) {
  const entries = Object.entries(metadata);
  const rest = Object.fromEntries(entries.filter(([name]) => !isPlain(name)));
  const plain = Object.fromEntries(entries.filter(([name]) => isPlain(name)));
  return { ...plain, [`${OWN}id`]: id, ...(Object.keys(rest).length ? { [`${OWN}rest`]: rest } : {}) };
}

/**
 * The id and metadata that `wrapped` was given.
 *
 * @param {{ metadata: Metadata }} memory
 * @returns {{ id: string, metadata: Metadata }}
 */
export function unwrapped({ metadata }) {
  const own = Object.entries(metadata).filter(([name]) => !name.startsWith(OWN));
  return { id: metadata[`${OWN}id`], metadata: { ...Object.fromEntries(own), ...metadata[`${OWN}rest`] } };
}

/**
 * Of memories of one entry the last.
 *
 * @param {Row[]} rows
 * @returns {Row[]}
 */
export function latest(rows) {
  return [...new Map(rows.map((row) => [unwrapped(row).id, row])).values()];
}

/**
 * The text of an entry: that of the chunk where its metadata has one, as Mastra's documents do, else its id.
 *
 * @param {string} id
 * @param {Metadata} metadata
 * @returns {string}
 */
export function contentOf(id, metadata) {
  return typeof metadata.text === 'string' && metadata.text.trim() ? metadata.text : id;
}

/**
 * The caller's name for a field of one of several memories: `metadata[3].text` for `memories[3].content`.
 *
 * @param {{ id: string, metadata: Metadata, at: number }[]} entries The entries of the memories.
 * @param {string} param
 * @param {Naming} nameOf
 */
export function nameIn(entries, param, nameOf) {
  return param.replace(FIELD, (_, place, field) => {
    const { id = '', metadata = {}, at = 0 } = entries[place] ?? {};
    if (field === 'embedding') return nameOf(at, 'vector');
    if (field === `metadata.${OWN}id` || (field === 'content' && contentOf(id, metadata) === id)) return nameOf(at, 'id');
    return nameOf(at, 'metadata') + (field === 'content' ? '.text' : '');
  });
}

/**
 * A part of the name of a channel; a slash stands between two.
 *
 * @param {string} name
 */
export function escaped(name) {
  return name.replace(/[%/]/g, encodeURIComponent);
}

/**
 * Whether a key of the metadata of a vector is one of its memory, too.
 *
 * @param {string} name
 */
export function isPlain(name) {
  return name !== '' && name !== RESERVED && !name.startsWith('$') && !name.startsWith(OWN);
}
