// The scope of a memory as the API takes it: `user:ada`, `global`.

/** @param {import("../../types.js").Memory} memory */
export function scopeOf(memory) {
  /** @type {Record<string, string | null>} */
  const ids = { session: memory.session_id, channel: memory.channel_id, agent: memory.agent_id, user: memory.user_id };
  const id = ids[memory.scope];
  return id ? `${memory.scope}:${id}` : memory.scope;
}
