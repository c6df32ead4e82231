/**
 * @typedef {object} EmbeddingModel
 * @property {'v2'} specificationVersion
 * @property {string} provider
 * @property {string} modelId
 * @property {number} maxEmbeddingsPerCall
 * @property {boolean} supportsParallelCalls
 * @property {(call: { values: string[], abortSignal?: AbortSignal }) => Promise<{ embeddings: number[][] }>} doEmbed
 */

/**
 * The server's embedding model, as Mastra and the AI SDK take one.
 *
 * @param {import('../client.js').Memoranda} memoranda
 * @returns {EmbeddingModel}
 */
export function embeddingModel(memoranda) {
  return {
    specificationVersion: 'v2',
    provider: 'memoranda',
    modelId: 'memoranda',
    maxEmbeddingsPerCall: 2048,
    supportsParallelCalls: true,
    async doEmbed({ values, abortSignal }) {
      return { embeddings: await memoranda.embed(values, abortSignal ? { signal: abortSignal } : {}) };
    },
  };
}
