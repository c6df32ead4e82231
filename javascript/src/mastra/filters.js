/**
 * Filters of Mastra, which are written as MongoDB's, as filters of Memoranda.
 *
 * @module
 */
import { InvalidInput } from '../errors.js';
import { isPlain } from './entries.js';

/** @typedef {string | number | boolean | null} Scalar */
/** @typedef {{ type: string, key: string, value: Scalar | Scalar[] } | { type: 'and' | 'or', filters: Filter[] }} Filter */

/** @type {Record<string, string>} */
const OPERATORS = { $eq: 'eq', $ne: 'ne', $gt: 'gt', $gte: 'gte', $lt: 'lt', $lte: 'lte', $in: 'in', $nin: 'nin' };
/** @type {Record<string, string>} */
const OPPOSITES = { eq: 'ne', ne: 'eq', in: 'nin', nin: 'in', and: 'or', or: 'and' };

/**
 * @param {unknown} filter
 * @param {string} [at] The caller's name of it.
 * @returns {Filter | null}
 */
export function filterFrom(filter, at = 'filter') {
  const parts = filter == null ? [] : conditions(filter, at);
  return parts.length ? all(parts) : null;
}

/**
 * @param {unknown} filter
 * @param {string} at
 * @returns {Filter[]}
 */
function conditions(filter, at) {
  return Object.entries(objectOf(filter, at)).flatMap(([key, value]) => {
    const path = `${at}.${key}`;
    if (key === '$and') return listOf(value, path).flatMap((part, i) => conditions(part, `${path}[${i}]`));
    if (key === '$or') return [any(listOf(value, path).map((part, i) => all(conditions(part, `${path}[${i}]`))))];
    if (key === '$nor') return listOf(value, path).map((part, i) => not(all(conditions(part, `${path}[${i}]`)), path));
    if (key === '$not') return [not(all(conditions(value, path)), path)];
    if (!isPlain(key) || key.includes('.')) {
      throw new InvalidInput(`${path}: is no condition; name a key of the metadata, or $and, $or, $nor, $not`, { param: path });
    }
    return compared(key, value, path);
  });
}

/**
 * @param {string} key
 * @param {unknown} value
 * @param {string} path
 * @returns {Filter[]}
 */
function compared(key, value, path) {
  if (Array.isArray(value)) return [{ type: 'in', key, value: value.map((one) => scalar(one, path)) }];
  if (value === null || typeof value !== 'object' || value instanceof Date) {
    return [{ type: 'eq', key, value: scalar(value, path) }];
  }
  const comparisons = Object.entries(objectOf(value, path));
  if (!comparisons.length) throw new InvalidInput(`${path}: is empty; name an operator`, { param: path });
  return comparisons.flatMap(([operator, operand]) => {
    const at = `${path}.${operator}`;
    if (operator === '$not') return [not(all(compared(key, operand, at)), at)];
    if (operator === '$exists') return [{ type: operand ? 'ne' : 'eq', key, value: null }];
    if (operator === '$all') return [every(key, listOf(operand, at).map((one) => scalar(one, at)))];
    const type = OPERATORS[operator];
    if (type === undefined) {
      const known = [...Object.keys(OPERATORS), '$all', '$exists', '$not'].join(', ');
      throw new InvalidInput(`${at}: is not known; use ${known}`, { param: at });
    }
    const isList = type === 'in' || type === 'nin';
    return [{ type, key, value: isList ? listOf(operand, at).map((one) => scalar(one, at)) : scalar(operand, at) }];
  });
}

/** @param {Filter[]} filters @returns {Filter} */
function all(filters) {
  const [first] = filters;
  return first && filters.length === 1 ? first : { type: 'and', filters };
}

/**
 * That a list has all of these values; none matches nothing, as in MongoDB.
 *
 * @param {string} key
 * @param {Scalar[]} values
 */
function every(key, values) {
  return values.length ? all(values.map((value) => ({ type: 'eq', key, value }))) : any([]);
}

/** @param {Filter[]} filters @returns {Filter} */
function any(filters) {
  return { type: 'or', filters };
}

/**
 * @param {Filter} filter
 * @param {string} path
 * @returns {Filter}
 */
function not(filter, path) {
  const type = OPPOSITES[filter.type];
  if (type === undefined) {
    const says = `${path}: cannot deny ${filter.type}, which is false of a missing key, too; write the opposite comparison`;
    throw new InvalidInput(says, { param: path });
  }
  if ('filters' in filter) {
    return { type: /** @type {'and' | 'or'} */ (type), filters: filter.filters.map((part) => not(part, path)) };
  }
  return { ...filter, type };
}

/** @param {unknown} value @param {string} path @returns {object} */
function objectOf(value, path) {
  if (Object.prototype.toString.call(value) === '[object Object]') return /** @type {object} */ (value);
  throw new InvalidInput(`${path}: must be a plain object of conditions`, { param: path });
}

/** @param {unknown} value @param {string} path @returns {unknown[]} */
function listOf(value, path) {
  if (Array.isArray(value)) return value;
  throw new InvalidInput(`${path}: must be a list`, { param: path });
}

/** @param {unknown} value @param {string} path @returns {Scalar} */
function scalar(value, path) {
  if (value instanceof Date && Number.isFinite(value.getTime())) return value.toISOString();
  if (value === null || ['string', 'boolean'].includes(typeof value) || Number.isFinite(value)) return /** @type {Scalar} */ (value);
  throw new InvalidInput(`${path}: must be a text, a finite number, true, false, null or a date`, { param: path });
}
