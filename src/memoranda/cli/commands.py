"""The commands by subject, and the page that lists them. Imports nothing, so that the page comes at once."""

from __future__ import annotations

SECTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "Remember and find": {
        "add": ("memoranda.cli.add:add", "Remember one text."),
        "search": (
            "memoranda.cli.search:search",
            "Find the best memories for a text, by meaning and by words.",
        ),
        "ask": (
            "memoranda.cli.ask:ask",
            "Answer a question from memories and documents, and name the sources.",
        ),
        "context": (
            "memoranda.cli.context:context",
            "Print the prompt that answers a question: documents, memories, earlier sessions, within a budget.",
        ),
        "list": ("memoranda.cli.memories:list_", "List memories, newest first."),
        "get": ("memoranda.cli.memories:get", "Show memories by id, with all their fields."),
        "update": ("memoranda.cli.memories:update", "Change fields of a memory; the rest stays."),
        "delete": ("memoranda.cli.memories:delete", "Delete memories by id."),
        "forget": (
            "memoranda.cli.forget:forget",
            "Erase for good what ids, a scope, a text or other conditions name.",
        ),
        "facets": ("memoranda.cli.memories:facets", "Count memories by kind, scope, source, tag and month."),
        "duplicates": (
            "memoranda.cli.memories:duplicates",
            "List pairs of memories of one scope that say nearly the same, most alike first.",
        ),
        "memories": ("memoranda.cli.memories:memories", "List memories; show and delete one."),
    },
    "Documents": {
        "index": ("memoranda.cli.index:index", "Index files of every format into a vector store."),
        "stores": (
            "memoranda.cli.stores:app",
            "List the vector stores; make, show, change, fill and delete them.",
        ),
        "files": (
            "memoranda.cli.files:app",
            "List the uploaded files; upload, show, download and delete them.",
        ),
    },
    "Conversations, facts and agents": {
        "facts": (
            "memoranda.cli.facts:app",
            "List facts, show where they come from, and undo changes of them.",
        ),
        "sessions": ("memoranda.cli.sessions:app", "List sessions; show, summarize, close and delete them."),
        "responses": (
            "memoranda.cli.responses:app",
            "List the stored responses; show, cancel and delete them.",
        ),
        "conversations": (
            "memoranda.cli.conversations:app",
            "Show stored conversations and their items, and delete them.",
        ),
        "agents": (
            "memoranda.cli.agents:app",
            "List the agent profiles; show, create, change and delete them.",
        ),
        "memory-stores": (
            "memoranda.cli.memory_stores:app",
            "List, create, show, change, archive and delete memory stores of agents, and their memories.",
        ),
    },
    "Serve and connect": {
        "serve": ("memoranda.cli.serve:serve", "Serve the folder over HTTP until stopped."),
        "console": (
            "memoranda.cli.console:console",
            "Open the web console of the folder's server, or of one that runs until it is stopped.",
        ),
        "mcp": (
            "memoranda.cli.mcp:mcp",
            "Serve memory and documents to an MCP client at standard input and output.",
        ),
        "connect": (
            "memoranda.cli.connect.command:connect",
            "Write the configuration of an MCP client: this server, and hooks that remember every session.",
        ),
        "hook": (
            "memoranda.cli.hook:hook",
            "Answer a hook of a client: JSON at standard input, context at standard output.",
        ),
        "worker": (
            "memoranda.cli.serve:worker",
            "Do background work for the servers of a PostgreSQL database until stopped.",
        ),
    },
    "The folder": {
        "doctor": (
            "memoranda.cli.doctor:doctor",
            "Say what is in force, what is missing, and what to do about it.",
        ),
        "stats": (
            "memoranda.cli.maintenance:stats",
            "Count what is remembered: by kind, and whether every index has it.",
        ),
        "export": (
            "memoranda.cli.export_import:export",
            "Write everything into a zip file, or memories as JSONL or as a bundle of Portable Memory.",
        ),
        "import": (
            "memoranda.cli.export_import:import_",
            "Import an export of Memoranda or of another system.",
        ),
        "reindex": ("memoranda.cli.maintenance:reindex", "Make the vectors that are missing."),
        "backfill": (
            "memoranda.cli.backfill:app",
            "Make what is missing of what is there already: embeddings, summaries, query-logs.",
        ),
        "compact": (
            "memoranda.cli.maintenance:compact",
            "Give back what deleted memories still hold, on disk and in memory.",
        ),
        "jobs": ("memoranda.cli.jobs:app", "List background jobs; show, retry and cancel them."),
        "usage": (
            "memoranda.cli.usage:usage",
            "Tell what was spent, by day and purpose: model calls, tokens, embedded texts.",
        ),
        "quotas": ("memoranda.cli.quotas:quotas", "Show the usage and quotas of a tenant, and set quotas."),
        "switches": (
            "memoranda.cli.switches:switches",
            "Show or set whether facts are extracted and summaries made, for a tenant or a channel.",
        ),
    },
    "Try and measure": {
        "demo": (
            "memoranda.cli.demo:demo",
            "Remember a sample conversation and Memoranda's own documents, then answer questions about them.",
        ),
        "eval": (
            "memoranda.cli.evals.command:app",
            "Measure how well recall works on questions whose answers are known.",
        ),
        "version": ("memoranda.cli.app:version_command", "Print the version."),
    },
}
"""The function of each command, and its line in the list of commands, by subject. A module is imported when its command
is called, so that neither the list nor another command waits for its imports."""
COMMANDS = {name: command for section in SECTIONS.values() for name, command in section.items()}
ABOUT = "Memory and knowledge for AI agents, in one folder and no network."
EXAMPLES = """\
  memoranda add "The spare key is under the blue pot." --user ada
  memoranda search "where is the key?" --user ada
  memoranda index manual.pdf notes --store manuals
  memoranda ask "how often is the filter changed?" --store manuals
  memoranda serve"""
CALLS = {
    "add": (
        'add "The spare key is under the blue pot." --user ada --tag house',
        "add - --role user < notes.txt",
    ),
    "search": (
        'search "where is the key?" --user ada --limit 3 --explain',
        'search "how is it cleaned?" --store manuals',
    ),
    "ask": (
        'ask "how often is the filter changed?" --store manuals',
        'ask "Where does Ana live?" --user ana',
    ),
    "context": ('context "Where does Ana live?" --user ana --budget 800',),
    "list": ("list --user ada --kind fact",),
    "update": ("update mem_1 --tag house --importance 2",),
    "forget": ('forget --user ada --text "blue pot" --yes',),
    "facets": ("facets --user ada",),
    "index": ("index manual.pdf notes --store manuals", "index notes --store notes --prune"),
    "stores": ("stores create manuals", "stores files manuals"),
    "files": ("files upload report.pdf",),
    "facts": ("facts list --user ada", "facts extract monday"),
    "sessions": ("sessions list --channel garden", "sessions summarize monday"),
    "agents": ('agents create Support --instructions "Answer from the documents."',),
    "serve": (
        "serve --set model.url=http://localhost:11434/v1 --set model.name=qwen3:8b",
        "serve --port 9000",
    ),
    "mcp": ("mcp --data ~/memory --user ada",),
    "connect": ("connect claude-code --data ~/memory --user ada --dry-run",),
    "export": ("export --output everything.zip", "export --output ada.jsonl --user ada"),
    "import": ("import everything.zip", "import chatgpt.zip --user ada --dry-run"),
    "backfill": ("backfill embeddings",),
    "quotas": ("quotas --quota max_stores=10",),
    "switches": ("switches --switch extraction=on",),
}
"""Calls that the help of a command shows."""
OPTIONS = {
    "--data, --config, --set, --json": "Go after the command: the folder, a configuration file, a setting, JSON.",
    "--version": "Print the version and stop.",
    "--install-completion": "Install completion for the current shell.",
    "--show-completion": "Show completion for the current shell.",
    "-h, --help": "Show this page; after a command, its options and examples.",
}


def overview(width: int) -> str:
    """Return the page that lists the commands, in lines of at most `width` characters."""
    parts = [f"Usage: memoranda COMMAND [OPTIONS]\n\n{ABOUT}"]
    longest = max(map(len, COMMANDS))
    for title, commands in SECTIONS.items():
        parts.append(_listed(title, {name: says for name, (_, says) in commands.items()}, longest, width))
    parts += [f"Examples\n{EXAMPLES}", _listed("Options", OPTIONS, longest, width)]
    return "\n\n".join(parts)


def examples(name: str) -> str | None:
    """Return what the help of a command has at its end; None for a command without examples. The first character of the
    second paragraph keeps its lines as they are."""
    calls = CALLS.get(name)
    return (
        None
        if calls is None
        else "\n".join(["Examples:", "", "\b", *(f"  memoranda {call}" for call in calls)])
    )


def _listed(title: str, lines: dict[str, str], longest: int, width: int) -> str:
    """Return a list of names with their texts, which are wrapped."""
    room = max(30, width - longest - 4)
    written = [title]
    for name, text in lines.items():
        wrapped = [""]
        for word in text.split():
            if wrapped[-1] and len(wrapped[-1]) + len(word) >= room:
                wrapped.append("")
            wrapped[-1] += f" {word}" if wrapped[-1] else word
        if len(name) > longest:
            written.append(f"  {name}")
        else:
            written.append(f"  {name:<{longest}}  {wrapped.pop(0)}")
        written += [" " * (longest + 4) + line for line in wrapped]
    return "\n".join(written)
