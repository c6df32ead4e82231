/** @typedef {import('./middleware.js').MemoryOptions} MemoryOptions */
/** @typedef {import('./tools.js').ToolOptions} ToolOptions */

export { memoryMiddleware } from './middleware.js';
export { memoryTools } from './tools.js';
