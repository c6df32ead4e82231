// A language model for agents of Mastra that says what it is told to.

/** A model that plays turns, each a text or the call of a tool; `prompts` are what it was asked. */
export function scripted(turns) {
  const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };
  const prompts = [];
  const played = (prompt) => {
    prompts.push(prompt);
    const turn = turns.shift();
    if (turn === undefined) throw new Error('the script is over');
    const isText = typeof turn === 'string';
    const call = { type: 'tool-call', toolCallId: `call_${prompts.length}`, toolName: turn.tool, input: JSON.stringify(turn.input) };
    return { content: [isText ? { type: 'text', text: turn } : call], finishReason: isText ? 'stop' : 'tool-calls', usage };
  };
  return {
    specificationVersion: 'v2',
    provider: 'scripted',
    modelId: 'scripted',
    supportedUrls: {},
    prompts,
    async doGenerate({ prompt }) {
      return { ...played(prompt), warnings: [] };
    },
    async doStream({ prompt }) {
      const { content: [part], ...finish } = played(prompt);
      const parts = part.type !== 'text' ? [part] : [
        { type: 'text-start', id: '1' }, { type: 'text-delta', id: '1', delta: part.text }, { type: 'text-end', id: '1' },
      ];
      return { stream: ReadableStream.from([{ type: 'stream-start', warnings: [] }, ...parts, { type: 'finish', ...finish }]) };
    },
  };
}
