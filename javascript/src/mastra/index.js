export { embeddingModel } from './embedding.js';
export { MemorandaMemoryStorage, MemorandaStorage } from './storage.js';
export { MemorandaVector } from './vector.js';
