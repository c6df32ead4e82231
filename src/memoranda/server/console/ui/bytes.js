// Sizes in units that people read.
const UNITS = ["B", "kB", "MB", "GB", "TB"];

/** 1,234,567 as "1.2 MB". @param {number} bytes */
export function bytesOf(bytes) {
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${value >= 100 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}

/** A moment of the API that counts seconds, as one that `Time` shows. @param {number | null} seconds */
export const isoOf = (seconds) => (seconds === null ? null : new Date(seconds * 1000).toISOString());
