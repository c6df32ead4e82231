// Days as date fields have them, "2026-03-01", and as the API takes them.

/**
 * The beginning of a day of this time zone; null for anything that is no day.
 * @param {string | null} day
 */
export function momentOf(day) {
  const at = new Date(`${day}T00:00`);
  return day && !Number.isNaN(at.getTime()) ? at.toISOString() : null;
}
