// The client of the official TypeScript SDK against a server: `client.mjs VERSION http URL KEY` or
// `client.mjs VERSION stdio COMMAND ...`. Prints what each request answered, as JSON.
const [version, transport, ...where] = process.argv.slice(2);

const earlier = async () => ({
    ...(await import("@modelcontextprotocol/sdk/client/index.js")),
    ...(await import("@modelcontextprotocol/sdk/client/streamableHttp.js")),
    ...(await import("@modelcontextprotocol/sdk/client/stdio.js")),
});
const current = async () => ({
    ...(await import("@modelcontextprotocol/client")),
    ...(await import("@modelcontextprotocol/client/stdio")),
});
const sdk = version === "2025-11-25" ? await earlier() : await current();

const client = new sdk.Client(
    { name: "test", version: "1" },
    version === "2025-11-25" ? {} : { versionNegotiation: { mode: { pin: version } } },
);
const open = {
    http: () =>
        new sdk.StreamableHTTPClientTransport(new URL(where[0]), {
            requestInit: { headers: { authorization: `Bearer ${where[1]}` } },
        }),
    stdio: () => new sdk.StdioClientTransport({ command: where[0], args: where.slice(1), env: process.env }),
};
await client.connect(open[transport]());
const tools = (await client.listTools()).tools;
const kept = await client.callTool({ name: "remember", arguments: { text: "The lamp in the hall is blue." } });
const found = await client.callTool({ name: "recall", arguments: { query: "Which colour is the lamp?" } });
const wrong = await client.callTool({ name: "recall", arguments: { query: "lamp", limit: 0 } }).catch((error) => ({
    isError: true,
    content: [{ text: error.message }],
}));
const id = kept.structuredContent.id;
const read = await client.readResource({ uri: `memoranda://memories/${id}` });
const prompt = await client.getPrompt({ name: "answer_from_memory", arguments: { question: "Which colour is the lamp?" } });
console.log(
    JSON.stringify({
        server: client.getServerVersion().name,
        tools: tools.map((tool) => tool.name),
        outputs: tools.every((tool) => tool.outputSchema?.type === "object"),
        id,
        found: found.structuredContent.results.map((hit) => [hit.id, hit.text]),
        wrong: [wrong.isError, wrong.content[0].text],
        read: read.contents[0].text,
        prompt: prompt.messages.map((message) => message.content.text).join("\n"),
        resources: (await client.listResources()).resources.map((resource) => resource.uri),
    }),
);
await client.close();
