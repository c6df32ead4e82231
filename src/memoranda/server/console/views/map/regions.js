// Regions of the map: where points are near each other, and the memory in the middle of each, whose beginning names it.

/**
 * @typedef {{ scale: number, left: number, top: number }} Placed pixel = scale * coordinate + offset
 * @typedef {{ at: number, points: number[], left: number, top: number }} Region `at` is the point in the middle; `left` and `top` are the corner of its label
 */

export const WIDTH = 168; // pixels of a label, at most
const HEIGHT = 24;
const BESIDE = 8; // pixels between a label, which is above or below, and its point
const CELL = { width: 176, height: 112 }; // pixels of a cell before it grows with the zoom, to twice as much
const MOST = 12;

/**
 * The regions in sight whose labels do not overlap, those with the most points first. The cells are fixed in the plane,
 * and halved each time the zoom doubles, so that a label stays at its point while the plane moves.
 * @param {[number, number][]} points
 * @param {Placed} placed
 * @param {number} zoom
 * @param {{ width: number, height: number }} box
 * @param {{ left: number, top: number, width: number, height: number }[]} taken where no label may be
 * @returns {Region[]}
 */
export function regionsOf(points, { scale, left, top }, zoom, box, taken) {
  const level = scale / zoom * 2 ** Math.floor(Math.log2(zoom));
  const [wide, high] = [CELL.width / level, CELL.height / level];
  /** @type {Map<string, number[]>} */
  const cells = new Map();
  points.forEach(([x, y], at) => {
    const [px, py] = [left + scale * x, top - scale * y];
    if (px < 0 || py < 0 || px > box.width || py > box.height) return;
    const key = `${Math.floor(x / wide)} ${Math.floor(y / high)}`;
    const cell = cells.get(key);
    if (cell) cell.push(at);
    else cells.set(key, [at]);
  });
  /** @type {Region[]} */
  const regions = [];
  const occupied = [...taken];
  for (const cell of [...cells.values()].sort((a, b) => b.length - a.length)) {
    const at = middleOf(points, cell);
    const [px, py] = [left + scale * of(points, at)[0], top - scale * of(points, at)[1]];
    const across = Math.max(4, Math.min(box.width - WIDTH - 4, px - WIDTH / 2));
    const free = [py - HEIGHT - BESIDE, py + BESIDE].map((down) => ({ left: across, top: down, width: WIDTH, height: HEIGHT }))
      .filter((one) => one.top >= 4 && one.top + HEIGHT <= box.height && !occupied.some((other) => overlap(other, one)));
    const [label] = free.map((one) => ({ ...one, covers: cell.filter((point) => within(one, left + scale * of(points, point)[0], top - scale * of(points, point)[1])).length })).sort((a, b) => a.covers - b.covers);
    if (label === undefined) continue;
    occupied.push(label);
    regions.push({ at, points: cell, left: label.left, top: label.top });
    if (regions.length === MOST) break;
  }
  return regions;
}

/** The point nearest to the mean of a cell. @param {[number, number][]} points @param {number[]} cell */
function middleOf(points, cell) {
  const [x, y] = [0, 1].map((axis) => cell.reduce((sum, at) => sum + /** @type {number} */ (of(points, at)[axis]), 0) / cell.length);
  const far = /** @param {number} at */ (at) => Math.hypot(of(points, at)[0] - (x ?? 0), of(points, at)[1] - (y ?? 0));
  return cell.reduce((best, at) => (far(at) < far(best) ? at : best));
}

/** @param {[number, number][]} points @param {number} at */
const of = (points, at) => /** @type {[number, number]} */ (points[at]);

/**
 * The point at most `reach` pixels from a place, the nearest one; null without one.
 * @param {[number, number][]} points
 * @param {Placed} placed
 * @param {{ x: number, y: number }} place
 * @param {number} reach
 */
export function pointAt(points, { scale, left, top }, place, reach) {
  let [best, least] = [/** @type {number | null} */ (null), reach];
  points.forEach(([x, y], at) => {
    const far = Math.hypot(left + scale * x - place.x, top - scale * y - place.y);
    if (far <= least) [best, least] = [at, far];
  });
  return best;
}

/** @typedef {{ left: number, top: number, width: number, height: number }} Box */
/** @param {Box} box @param {number} x @param {number} y */
const within = (box, x, y) => x >= box.left && x <= box.left + box.width && y >= box.top && y <= box.top + box.height;
/** @param {Box} a @param {Box} b */
const overlap = (a, b) => a.left < b.left + b.width && b.left < a.left + a.width && a.top < b.top + b.height && b.top < a.top + a.height;
