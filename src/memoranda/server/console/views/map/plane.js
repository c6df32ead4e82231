// The points on a canvas: the wheel zooms, and a lasso selects what it encloses.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useSignal, useState } from "../../ui/core.js";
import { Button } from "../../ui/form.js";
import { theme } from "../../theme.js";
import { t } from "../../strings.js";
import { Label, Tip } from "./named.js";
import { pointAt, regionsOf } from "./regions.js";

/** @typedef {{ x: number, y: number }} Point */

const MARGIN = 16; // pixels around the points
const CLICK = 4; // pixels within which a lasso is a click, which selects nothing
const REACH = 10; // pixels from the pointer within which a point shows its text
const FURTHEST = 40; // times that the points can be enlarged

/**
 * @param {{ shown: import("../../types.js").Projection, groups: import("./groups.js").Group[], chosen: number[], onChoose: (points: number[]) => void }} props
 */
export function Plane({ shown, groups, chosen, onChoose }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const points = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  const lasso = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  const view = useRef({ zoom: 1, x: 0, y: 0 });
  const drawn = useRef(/** @type {Point[]} */ ([]));
  const waiting = useRef(0);
  const choice = useSignal(theme);
  const [regions, setRegions] = useState(/** @type {import("./regions.js").Region[]} */ ([]));
  const [under, setUnder] = useState(/** @type {{ at: number, x: number, y: number, box: { width: number, height: number } } | null} */ (null));
  const extent = useMemo(() => extentOf(shown), [shown]);

  /** Where the points are in the box: pixel = scale * coordinate + offset. */
  const placed = () => {
    const { width, height } = /** @type {HTMLElement} */ (box.current).getBoundingClientRect();
    const fit = Math.min((width - 2 * MARGIN) / extent.width, (height - 2 * MARGIN) / extent.height);
    const { zoom, x, y } = view.current;
    const scale = Math.max(fit, 1e-9) * zoom;
    return { scale, left: width / 2 + x - scale * extent.x, top: height / 2 + y + scale * extent.y };
  };

  const draw = () => {
    cancelAnimationFrame(waiting.current);
    waiting.current = requestAnimationFrame(() => {
      if (!points.current || !box.current) return;
      const bounds = box.current.getBoundingClientRect();
      const taken = [...box.current.querySelectorAll(":scope > .plane-zoom, :scope > .keys")].map((one) => one.getBoundingClientRect()).map(({ left, top, width, height }) => ({ left: left - bounds.left, top: top - bounds.top, width, height }));
      setRegions(regionsOf(shown.points, placed(), view.current.zoom, bounds, taken));
      const context = cleared(points.current, box.current);
      const { scale, left, top } = placed();
      const size = shown.ids.length > 20_000 ? 2 : shown.ids.length > 2_000 ? 3 : 6;
      const marked = new Set(chosen);
      for (const group of groups) {
        const { color, opacity } = getComputedStyle(/** @type {Element} */ (box.current.querySelector(`.swatch.${group.swatch}`)));
        context.fillStyle = color;
        for (const at of group.points) {
          context.globalAlpha = marked.size === 0 || marked.has(at) ? Number(opacity) : 0.15 * Number(opacity);
          const [x, y] = /** @type {[number, number]} */ (shown.points[at]);
          context.fillRect(left + scale * x - size / 2, top - scale * y - size / 2, size, size);
        }
      }
    });
  };

  const drawLasso = () => {
    if (!lasso.current || !box.current) return;
    const context = cleared(lasso.current, box.current);
    context.strokeStyle = getComputedStyle(box.current).color;
    context.lineWidth = 1.5;
    context.beginPath();
    drawn.current.forEach(({ x, y }, n) => (n ? context.lineTo(x, y) : context.moveTo(x, y)));
    context.stroke();
  };

  useEffect(draw, [shown, groups, chosen, choice]);
  useLayoutEffect(() => {
    const element = /** @type {HTMLElement} */ (box.current);
    const observer = new ResizeObserver(() => draw());
    observer.observe(element);
    /** @param {WheelEvent} event */
    const wheel = (event) => {
      event.preventDefault();
      zoomBy(Math.exp(-event.deltaY / 400), at(event));
    };
    element.addEventListener("wheel", wheel, { passive: false }); // a passive one could not keep the page from scrolling
    return () => {
      observer.disconnect();
      element.removeEventListener("wheel", wheel);
    };
  }, [shown, groups, chosen]);

  /** @param {MouseEvent} event @returns {Point} */
  const at = (event) => {
    const { left, top } = /** @type {HTMLElement} */ (box.current).getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  };

  /** @param {number} factor @param {Point} [around] what stays where it is */
  const zoomBy = (factor, around) => {
    const { width, height } = /** @type {HTMLElement} */ (box.current).getBoundingClientRect();
    const before = view.current;
    const zoom = Math.min(FURTHEST, Math.max(1, before.zoom * factor));
    const [x, y] = [(around?.x ?? width / 2) - width / 2, (around?.y ?? height / 2) - height / 2];
    const grown = zoom / before.zoom;
    setUnder(null);
    view.current = zoom === 1 ? { zoom, x: 0, y: 0 } : { zoom, x: x - (x - before.x) * grown, y: y - (y - before.y) * grown };
    draw();
  };

  /** Shows the text of a point. @param {number | null} point */
  const show = (point) => {
    if (point === null) return setUnder(null);
    const { scale, left, top } = placed();
    const [x, y] = /** @type {[number, number]} */ (shown.points[point]);
    const { width, height } = /** @type {HTMLElement} */ (box.current).getBoundingClientRect();
    return setUnder({ at: point, x: left + scale * x, y: top - scale * y, box: { width, height } });
  };

  /** @param {PointerEvent} event */
  const begin = (event) => {
    if (event.button !== 0) return;
    setUnder(null);
    /** @type {Element} */ (event.currentTarget).setPointerCapture(event.pointerId);
    drawn.current = [at(event)];
  };
  /** @param {PointerEvent} event */
  const move = (event) => {
    if (drawn.current.length === 0) {
      if (event.target instanceof HTMLCanvasElement) show(pointAt(shown.points, placed(), at(event), REACH));
      return;
    }
    drawn.current.push(at(event));
    drawLasso();
  };
  const end = () => {
    const outline = drawn.current;
    drawn.current = [];
    drawLasso();
    if (outline.length === 0) return;
    const far = outline.some(({ x, y }) => Math.hypot(x - /** @type {Point} */ (outline[0]).x, y - /** @type {Point} */ (outline[0]).y) > CLICK);
    const { scale, left, top } = placed();
    onChoose(far ? shown.points.flatMap(([x, y], n) => (encloses(outline, left + scale * x, top - scale * y) ? n : [])) : []);
  };

  return html`<div class="plane" ref=${box} onPointerDown=${begin} onPointerMove=${move} onPointerUp=${end} onPointerCancel=${end} onPointerLeave=${() => setUnder(null)}>
    <canvas ref=${points} role="img" aria-label=${t.map.picture(shown.ids.length)} />
    <canvas ref=${lasso} aria-hidden="true" />
    <div hidden>${groups.map((group) => html`<i key=${group.swatch} class=${`swatch ${group.swatch}`} />`)}</div>
    ${regions.map((region) => html`<${Label} key=${shown.ids[region.at]} id=${shown.ids[region.at]} region=${region} onShow=${show} onChoose=${onChoose} />`)}
    ${under && shown.ids[under.at] !== undefined && html`<${Tip} shown=${shown} ...${under} />`}
    <div class="plane-zoom" onPointerDown=${/** @param {Event} event */ (event) => event.stopPropagation()}>
      <${Button} small onClick=${() => zoomBy(1.5)}>${t.map.closer}<//>
      <${Button} small onClick=${() => zoomBy(1 / 1.5)}>${t.map.further}<//>
    </div>
    <p class="keys quiet" aria-hidden="true">${t.map.hint}</p>
  </div>`;
}

/**
 * The canvas as large as its box, in the pixels of the screen, and empty.
 * @param {HTMLCanvasElement} canvas
 * @param {HTMLElement} box
 */
function cleared(canvas, box) {
  const { width, height } = box.getBoundingClientRect();
  const ratio = devicePixelRatio;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.scale(ratio, ratio);
  return context;
}

/**
 * The middle of the points and the extent of their coordinates.
 * @param {import("../../types.js").Projection} shown
 */
function extentOf({ points }) {
  const [left, right] = ends(points.map(([x]) => x));
  const [bottom, top] = ends(points.map(([, y]) => y));
  return { x: (left + right) / 2, y: (bottom + top) / 2, width: right - left || 1, height: top - bottom || 1 };
}

/** @param {number[]} values @returns {[number, number]} */
const ends = (values) => values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);

/**
 * Whether a point is inside an outline: a ray from it crosses the outline an odd number of times.
 * @param {Point[]} outline
 * @param {number} x
 * @param {number} y
 */
export function encloses(outline, x, y) {
  let inside = false;
  let before = /** @type {Point} */ (outline[outline.length - 1]);
  for (const corner of outline) {
    if (corner.y > y !== before.y > y && x < ((before.x - corner.x) * (y - corner.y)) / (before.y - corner.y) + corner.x) inside = !inside;
    before = corner;
  }
  return inside;
}
