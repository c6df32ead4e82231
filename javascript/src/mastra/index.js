export { MemorandaVector } from './vector.js';
