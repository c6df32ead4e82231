// Durations in units that people read.

/** 0.0123 as "12.3 ms", 75 as "1 min 15 s". @param {number} seconds */
export function durationOf(seconds) {
  if (seconds < 1) {
    const ms = seconds * 1000;
    return `${ms >= 100 || ms === 0 ? Math.round(ms) : ms.toFixed(1)} ms`;
  }
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)} min ${whole % 60} s`;
}
