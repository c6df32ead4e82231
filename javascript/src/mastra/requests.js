/**
 * Waiting for several requests.
 *
 * @module
 */
import { InvalidInput, NotFound } from '../errors.js';

const PARALLEL = 8; // requests at the same time

/**
 * What a function makes of each value, in their order; a few at the same time.
 *
 * @template T, R
 * @param {T[]} values
 * @param {(value: T) => Promise<R>} work
 * @returns {Promise<R[]>}
 */
export async function each(values, work) {
  /** @type {R[]} */
  const results = [];
  for (let start = 0; start < values.length; start += PARALLEL) {
    results.push(...(await Promise.all(values.slice(start, start + PARALLEL).map(work))));
  }
  return results;
}

/**
 * Waits for a request about one thing; returns false if there is no such thing.
 *
 * @param {Promise<unknown>} request
 */
export async function isThere(request) {
  try {
    await request;
    return true;
  } catch (error) {
    if (error instanceof NotFound) return false;
    throw error;
  }
}

/**
 * Waits for a request; a field that it is refused for gets the caller's name.
 *
 * @template T
 * @param {Promise<T>} request
 * @param {(param: string) => string} nameOf
 * @returns {Promise<T>}
 */
export async function refusedAs(request, nameOf) {
  try {
    return await request;
  } catch (error) {
    if (error instanceof InvalidInput && error.param) {
      const name = nameOf(error.param);
      if (error.message.startsWith(error.param)) error.message = name + error.message.slice(error.param.length);
      error.param = name;
    }
    throw error;
  }
}

/**
 * The first values of a stream.
 *
 * @template T
 * @param {AsyncIterable<T>} values
 * @param {number} limit
 */
export async function taken(values, limit) {
  const first = [];
  for await (const value of values) {
    first.push(value);
    if (first.length >= limit) break;
  }
  return first;
}
