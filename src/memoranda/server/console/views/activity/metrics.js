// Histograms and counters in Prometheus' text format.

/**
 * @typedef {{ name: string, labels: Record<string, string>, value: number }} Sample
 * @typedef {{ label: string, count: number, sum: number, mean: number, p95: number | null, failed: number }} Timing
 * `p95` is the upper bound of the bucket that has it, in seconds; null beyond the last one
 */

/** @param {string} text @returns {Sample[]} */
export function samplesOf(text) {
  /** @type {Sample[]} */
  const samples = [];
  for (const line of text.split("\n")) {
    const found = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)/.exec(line);
    if (found === null) continue;
    /** @type {Record<string, string>} */
    const labels = {};
    for (const [, name = "", value = ""] of (found[2] ?? "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) labels[name] = value.replace(/\\(.)/g, "$1");
    samples.push({ name: /** @type {string} */ (found[1]), labels, value: Number(found[3]) });
  }
  return samples;
}

/**
 * A histogram by one of its labels, what took longest in all first.
 * @param {Sample[]} samples
 * @param {string} name
 * @param {string} label
 * @returns {Timing[]}
 */
export function timingsOf(samples, name, label) {
  const count = samples.filter((one) => one.name === `${name}_count` && one.value > 0);
  return count.map(({ labels, value }) => {
    const of = labels[label] ?? "";
    const mine = samples.filter((one) => one.labels[label] === of);
    const sum = mine.find((one) => one.name === `${name}_sum`)?.value ?? 0;
    const bucket = mine.filter((one) => one.name === `${name}_bucket`).find((one) => one.value >= 0.95 * value);
    const bound = Number(bucket?.labels.le ?? "+Inf");
    return { label: of, count: value, sum, mean: sum / value, p95: Number.isFinite(bound) ? bound : null, failed: 0 };
  }).sort((a, b) => b.sum - a.sum);
}

/** Routes with how many of their requests failed. @param {Sample[]} samples @returns {Timing[]} */
export function routesOf(samples) {
  const failures = samples.filter((one) => one.name === "memoranda_http_requests_total" && Number(one.labels.status) >= 400);
  return timingsOf(samples, "memoranda_http_request_seconds", "route").map((route) => ({
    ...route, failed: failures.filter((one) => one.labels.route === route.label).reduce((sum, one) => sum + one.value, 0),
  }));
}
