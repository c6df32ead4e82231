/** @typedef {import('./connect.js').Options} Options */
/** @typedef {import('./connect.js').CallOptions} CallOptions */
/** @typedef {import('./connect.js').Http} Http */
/** @typedef {import('./files.js').Source} Source */
/** @typedef {import('./responses.js').Event} Event */

export { Memoranda } from './client.js';
export * from './errors.js';
export * from './types.js';
