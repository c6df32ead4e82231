// The types of the exports of htm-preact.js that the console uses.
export interface VNode { type: unknown; props: unknown; key: unknown }
export type Child = VNode | string | number | boolean | null | undefined | Child[];
export interface Ref<T> { current: T }
export type Update<S> = (next: S | ((before: S) => S)) => void;
export function html(strings: TemplateStringsArray, ...values: unknown[]): VNode;
export function h(type: unknown, props: unknown, ...children: unknown[]): VNode;
export function render(tree: Child, parent: Element): void;
export function useState<S>(initial: S | (() => S)): [S, Update<S>];
export function useEffect(effect: () => void | (() => void), inputs?: unknown[]): void;
export function useLayoutEffect(effect: () => void | (() => void), inputs?: unknown[]): void;
export function useRef<T>(initial: T): Ref<T>;
export function useMemo<T>(compute: () => T, inputs: unknown[]): T;
export function useCallback<F extends (...args: never[]) => unknown>(callback: F, inputs: unknown[]): F;
export function useErrorBoundary(callback?: (error: unknown) => void): [unknown, () => void];
