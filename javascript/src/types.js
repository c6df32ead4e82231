/**
 * The values of the API, by the names that this package uses. All are generated from the OpenAPI document.
 *
 * @module
 */

/** @typedef {import('./openapi.js').components['schemas']} Schemas */
/** @typedef {import('./openapi.js').paths} Paths */

/**
 * The query string of a listing.
 * @template {keyof Paths} Path
 * @typedef {Paths[Path] extends { get: { parameters: { query?: infer Query } } } ? NonNullable<Query> : never} QueryOf
 */

/** @typedef {Schemas['NewMemoryBody']} NewMemory */
/** @typedef {Schemas['Change']} MemoryChange */
/** @typedef {Schemas['Memory']} Memory */
/** @typedef {Schemas['AddedMemory']} AddedMemory */
/** @typedef {Schemas['AddedList']} AddedList */
/** @typedef {Schemas['Page']} MemoryList */
/** @typedef {Schemas['SearchBody']} Search */
/** @typedef {Schemas['SearchResult']} SearchResult */
/** @typedef {Schemas['Hit']} SearchHit */
/** @typedef {Schemas['SelectionBody']} Selection */
/** @typedef {Schemas['ForgetBody']} Forget */
/** @typedef {Schemas['Receipt']} Receipt */
/** @typedef {Schemas['ContextBody']} ContextQuery */
/** @typedef {Schemas['Context']} Context */
/** @typedef {Schemas['ObserveBody']} Observe */
/** @typedef {Schemas['NewMessage']} NewMessage */
/** @typedef {Schemas['ObservedList']} ObservedList */
/** @typedef {Schemas['Message']} Message */
/** @typedef {Schemas['MessagePage']} MessageList */
/** @typedef {Schemas['Session']} Session */
/** @typedef {Schemas['SessionPage']} SessionList */
/** @typedef {Schemas['FactHistory']} FactVersions */
/** @typedef {Schemas['Undone']} UndoneFact */
/** @typedef {Schemas['Extracted']} Extraction */
/** @typedef {Schemas['Consolidated']} Consolidation */
/** @typedef {Schemas['Swept']} Sweep */
/** @typedef {Schemas['FileObject']} StoredFile */
/** @typedef {Schemas['StoreObject']} VectorStore */

export {};
