"""The test suites of clients and agent frameworks, run against the product, and the table of their results.

    PYTHONPATH=tests .venv/bin/python -m support.framework_suites           runs them all and prints the table
    PYTHONPATH=tests .venv/bin/python -m support.framework_suites --write   runs them and writes it in the docs

Each suite runs in a virtual environment of its own that also sees the packages of the tests, so that a framework need
not be a development dependency. Packages come from wherever pip takes them.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from support.archives import unpack

TESTS = Path(__file__).parent.parent
ROOT = TESTS.parent
PAGE = ROOT / "docs" / "guides" / "integrations.md"
HEAD = "| adapter | client | suite | passed / total |\n|---|---|---|---|\n"
RAN = ("passed", "failed", "errors", "error", "deselected", "xfailed", "xpassed")
"""The outcomes that count as a test of the suite. What a suite skips by itself is not for this kind of adapter."""


@dataclass(frozen=True)
class Suite:
    """A published test suite, and what it takes to run it against one adapter."""

    adapter: str
    """What is tested; the name of the row."""
    client: str
    """The package whose version the table shows."""
    name: str
    """What the suite is called in the table."""
    files: tuple[str, ...]
    """What pytest runs, relative to the source package if there is one, otherwise to the repository."""
    packages: tuple[str, ...] = ()
    """What is installed beside the development dependencies, as pip takes it."""
    source: str | None = None
    """The package, `name==version`, whose source archive contains the tests."""
    plugin: str | None = None
    """A module in `tests` that is imported before the tests of a source package: it puts the adapter in the place of
    what they test."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Tests that do not run, as pytest names them or their beginnings, and why; they count in the total."""
    version: str | None = None
    """The version, where the client is no package of the environment."""
    own: tuple[str, ...] = ()
    """Tests of this repository that need the same packages; they must pass and are not counted."""


def pinned(file: Path, package: str) -> str:
    """The version of a package in a file of requirements."""
    (version,) = re.findall(rf"^{package}==(\S+)", file.read_text("utf-8"), re.MULTILINE)
    return str(version)


def named(file: str, package: str) -> str:
    """The version of a package of npm in a file of tests."""
    (version,) = set(re.findall(rf'"{package}@([\d][^"]*)"', (TESTS / file).read_text("utf-8")))
    return str(version)


NODE, MASTRA = (
    json.loads((TESTS / "wire" / folder / "package.json").read_text("utf-8"))["dependencies"]
    for folder in ("sdks", "mastra")
)
"""The clients of Node, with their versions."""
MEM0 = "mem0ai"
STRANDS = "tests/strands/vended_memory_stores"
SUITES = (
    Suite(
        adapter="MCP server",
        client="@modelcontextprotocol/conformance",
        version=named("mcp/conftest.py", "@modelcontextprotocol/conformance"),
        name="its scenarios that need no fixtures, of 2025-11-25 and 2026-07-28, with and without sessions; "
        "four checks of `server-stateless` need tools of the suite",
        files=("tests/mcp/test_conformance.py",),
    ),
    Suite(
        adapter="MCP endpoint",
        client="@modelcontextprotocol/conformance",
        version=named("mcp/conftest.py", "@modelcontextprotocol/conformance"),
        name="all that it requires of servers of 2025-11-25 and 2026-07-28, its fixtures behind `/mcp` with sessions",
        files=("tests/mcp/test_conformance_fixtures.py",),
    ),
    Suite(
        adapter="MCP server over stdio and HTTP",
        client="@modelcontextprotocol/client",
        version=named("mcp/test_node_clients.py", "@modelcontextprotocol/client"),
        name="tests of the server, with {} and {}".format(
            *(
                f"`{name}` {named('mcp/test_node_clients.py', f'@modelcontextprotocol/{name}')}"
                for name in ("sdk", "inspector")
            )
        ),
        files=("tests/mcp/test_node_clients.py",),
    ),
    Suite(
        adapter="MCP server and hooks, after `memoranda connect`",
        client="@anthropic-ai/claude-code",
        version=named("mcp/test_terminal_clients.py", "@anthropic-ai/claude-code"),
        name="sessions of Claude Code and {}, lists of {} and {}".format(
            *(
                f"`{name}` {named('mcp/test_terminal_clients.py', package)}"
                for name, package in (
                    ("codex", "@openai/codex"),
                    ("gemini-cli", "@google/gemini-cli"),
                    ("opencode", "opencode-ai"),
                )
            )
        ),
        files=("tests/mcp/test_terminal_clients.py",),
    ),
    Suite(
        adapter="Chat completions",
        client="openai",
        name="tests of the API by the SDK",
        files=("tests/wire/test_openai_chat.py",),
    ),
    Suite(
        adapter="Responses, LangChain",
        client="langchain-openai",
        name="tests of `ChatOpenAI` against the server",
        files=("tests/wire/test_sdk_langchain.py",),
    ),
    Suite(
        adapter="Responses, OpenAI Agents SDK",
        client="openai-agents",
        name="tests of the SDK against the server",
        files=("tests/wire/test_sdk_agents.py",),
    ),
    Suite(
        adapter="Responses and chat completions, AI SDK",
        client="ai",
        version=NODE["ai"],
        name=f"tests of `ai` and `openai` {NODE['openai']} for Node, and of their earlier major versions",
        files=("tests/wire/test_sdk_node.py",),
    ),
    Suite(
        adapter="JavaScript package, Mastra",
        client="@mastra/core",
        version=MASTRA["@mastra/core"],
        name=f"tests of the package on Node, with `@mastra/memory` {MASTRA['@mastra/memory']} and `ai` {NODE['ai']}",
        files=("tests/wire/test_javascript.py",),
    ),
    Suite(
        adapter="mem0's API",
        client=MEM0,
        version=pinned(TESTS / "wire" / "sdks" / "mem0.txt", MEM0),
        name="tests of the API by mem0's clients",
        files=("tests/wire/test_mem0_client.py",),
    ),
    Suite(
        adapter="LangGraph store",
        client="langgraph",
        name="tests of `langgraph-checkpoint-sqlite` 3.1.2",
        files=("tests/test_store.py", "tests/test_async_store.py", "tests/test_ttl.py"),
        source="langgraph-checkpoint-sqlite==3.1.2",
        plugin="support.langgraph_sqlite",
        left_out={
            "tests/test_store.py::test_vector_store_initialization": "reads the tables of SQLite",
            "tests/test_store.py::test_nonnull_migrations": "reads the migrations of SqliteStore",
            "tests/test_store.py::test_escape_glob_literal": "tests a private function",
            "tests/test_store.py::test_namespace_match_pattern": "tests a private function",
            "tests/test_store.py::test_list_namespaces_prefix_uses_indexable_condition": "reads SQL",
            "tests/test_store.py::test_sql_injection_vulnerability": "refuses filter keys that would be SQL",
        },
    ),
    Suite(
        adapter="LangGraph checkpointer",
        client="langgraph-checkpoint",
        name="`langgraph-checkpoint-conformance` 0.0.2",
        files=("tests/integrations/suites/langgraph_checkpointer.py",),
        packages=("langgraph-checkpoint-conformance==0.0.2",),
    ),
    Suite(
        adapter="LangChain vector store, retriever, embeddings, byte store",
        client="langchain-core",
        name="`langchain-tests`",
        files=tuple(
            f"tests/integrations/test_langchain.py::{name}"
            for name in (
                "TestVectorStore",
                "TestRetriever",
                "TestEmbeddings",
                "TestByteStore",
                "TestByteStoreAwaited",
            )
        ),
        packages=("langchain-classic==1.0.8",),
        own=("tests/integrations/test_langchain.py::test_cached_embeddings_are_not_computed_again",),
    ),
    Suite(
        adapter="OpenAI Agents SDK session",
        client="openai-agents",
        name="tests of `SQLiteSession`, openai-agents 0.24.0",
        files=("tests/memory/test_session.py", "tests/memory/test_session_limit.py"),
        source="openai-agents==0.24.0",
        plugin="support.agents_sqlite",
        left_out={
            f"tests/memory/test_session.py::test_sqlite_session_{name}": why
            for why, names in (
                (
                    "uses the connections of SQLite",
                    (
                        "close_closes_worker_thread_connections",
                        "reaps_connections_from_exited_worker_threads",
                        "closes_retired_connections_before_the_next_allocation",
                        "keeps_connections_of_live_worker_threads",
                        "file_lock_is_shared_across_instances",
                        "failed_add_items_releases_write_lock",
                        "failed_clear_session_rolls_back",
                        "failed_pop_item_releases_write_lock",
                        "rollback_failure_evicts_connection",
                        "close_retries_quarantined_connection",
                        "post_commit_cancellation_propagates_after_known_outcome",
                    ),
                ),
                (
                    "writes broken rows into the tables of SQLite",
                    (
                        "pop_item_skips_corrupt_most_recent",
                        "pop_item_returns_none_after_dropping_only_corrupt_rows",
                        "get_items_limit_skips_corrupt_newest_rows",
                        "get_items_session_settings_limit_skips_corrupt_rows",
                    ),
                ),
                ("closes the session; here the product is closed", ("closed_rejects_empty_add_items",)),
            )
            for name in names
        },
    ),
    Suite(
        adapter="LlamaIndex vector store, retriever, memory block",
        client="llama-index-core",
        name="tests of the adapter (LlamaIndex publishes none)",
        files=("tests/integrations/test_llama_index.py",),
        packages=("llama-index-core==0.14.25",),
    ),
    Suite(
        adapter="Haystack document store",
        client="haystack-ai",
        name="`haystack.testing`",
        files=("tests/integrations/suites/haystack_document_store.py",),
        packages=("haystack-ai==3.4.1",),
        own=("tests/integrations/test_haystack.py",),
    ),
    Suite(
        adapter="Anthropic memory tool",
        client="anthropic",
        name="differential tests against `BetaLocalFilesystemMemoryTool`",
        files=(
            "tests/integrations/test_anthropic_memory_tool.py::"
            "test_commands_are_answered_as_by_the_tool_of_the_sdk",
            "tests/integrations/test_anthropic_memory_tool.py::"
            "test_commands_of_one_story_are_answered_alike_on_folder_and_server",
        ),
        packages=("anthropic==2.14.0",),
        own=("tests/integrations/test_anthropic_memory_tool.py",),
    ),
    Suite(
        adapter="Anthropic's memory stores",
        client="anthropic",
        name="tests of the API (the SDK publishes none), by the SDK over HTTP",
        files=("tests/integrations/test_anthropic_memory_stores.py",),
        packages=("anthropic==2.14.0",),
    ),
    Suite(
        adapter="Claude Agent SDK session store",
        client="claude-agent-sdk",
        name="`run_session_store_conformance`, on a folder and a server",
        files=("tests/integrations/test_claude_agent_sdk.py::test_the_store_conforms",),
        packages=("claude-agent-sdk==0.2.189",),
        own=("tests/integrations/test_claude_agent_sdk.py",),
    ),
    Suite(
        adapter="Microsoft Agent Framework providers",
        client="agent-framework-core",
        name="tests of the adapter (the framework publishes none)",
        files=("tests/integrations/test_agent_framework.py",),
        packages=("agent-framework-core==1.23.0", "agent-framework-openai==1.17.0"),
    ),
    Suite(
        adapter="Google ADK memory service",
        client="google-adk",
        name="tests of the adapter (ADK publishes none)",
        files=("tests/integrations/test_google_adk.py",),
        packages=("google-adk==2.13.0",),
    ),
    Suite(
        adapter="Pydantic AI conversation store",
        client="pydantic-ai-slim",
        name="differential test against `InMemoryConversationStore`, on a folder and a server",
        files=(
            "tests/integrations/test_pydantic_ai.py::"
            "test_conversations_are_kept_as_by_the_store_of_the_framework",
        ),
        packages=("pydantic-ai-slim[openai]==2.68.0",),
        own=("tests/integrations/test_pydantic_ai.py",),
    ),
    Suite(
        adapter="Strands memory store",
        client="strands-agents",
        name="tests of `TestMemoryStore` and `FileMemoryStore`, strands-agents 1.62.0; "
        "the other 48 test the files, ids, errors or ranking of these stores",
        files=tuple(f"{STRANDS}/{store}_memory_store/test_store.py" for store in ("test", "file")),
        packages=("strands-agents[openai]==1.62.0", "moto==5.1.17"),
        source="strands-agents==1.62.0",
        plugin="support.strands_stores",
        left_out={
            f"{STRANDS}/{store}_memory_store/test_store.py::{name}": why
            for why, store, names in (
                (
                    "reads or writes the file of the store",
                    "test",
                    (
                        "TestConstructor::test_raises_when_explicit_path_is_empty",
                        "TestConstructor::test_defaults_to_a_sanitized_path_under_the_home_memory_dir",
                        "TestAdd::test_persists_human_readable_json",
                        "TestPersistence::test_raises_clear_error",
                        "TestPersistence::test_accepts_null_metadata_as_absent",
                        "TestCrossSdkInterop",
                    ),
                ),
                (
                    "expects `ValueError`; here it is `InvalidInput`",
                    "test",
                    (
                        "TestConstructor::test_raises_when_max_search_results_below_one",
                        "TestConstructor::test_raises_when_name_is_empty",
                        "TestAdd::test_raises",
                        "TestSearch::test_raises_when_max_search_results_below_one",
                    ),
                ),
                (
                    "replaces the function that makes ids",
                    "test",
                    ("TestAdd::test_uses_the_monkeypatchable_id_generator",),
                ),
                (
                    "expects common words as the only score; here vectors find and rank, too",
                    "test",
                    (
                        "TestSearch::test_returns_nothing_for_token_less_query",
                        "TestSearch::test_ranks_higher_overlap_first_with_relevance_score",
                        "TestSearch::test_excludes_records_with_no_token_overlap",
                        "TestSearch::test_breaks_ties_by_recency",
                    ),
                ),
                ("reads what the package of Strands exports", "test", ("TestPackageExport",)),
                (
                    "reads or replaces the files of the store",
                    "file",
                    (
                        "TestConstructor::test_auto_scopes_keys_under_memory_name",
                        "TestConstructor::test_scopes_distinct_stores_on_shared_backend",
                        "TestConstructor::test_does_not_re_scope_already_namespaced_storage",
                        "TestAdd",
                        "TestSearch::test_includes_path_in_metadata",
                        "TestSearch::test_skips_results_whose_read_fails",
                        "TestSearch::test_fills_max_search_results_when_a_higher_ranked_read_fails",
                    ),
                ),
                (
                    "expects common words; here vectors find, too",
                    "file",
                    ("TestSearch::test_returns_empty_for_no_matches",),
                ),
                (
                    "expects an extractor that knows the names of the files; here the product extracts",
                    "file",
                    (
                        "TestExtraction::test_extraction_true_creates_key_aware_extractor",
                        "TestExtraction::test_extraction_dict_without_extractor_creates_key_aware",
                        "TestExtraction::test_key_aware_extractor_includes_headings_in_prompt",
                    ),
                ),
            )
            for name in names
        },
        own=("tests/integrations/test_strands.py",),
    ),
    Suite(
        adapter="CrewAI storage backend",
        client="crewai",
        name="tests of `LanceDBStorage`, crewai 1.15.30",
        files=(
            "tests/memory/test_unified_memory.py",
            "tests/memory/test_memory_root_scope.py",
            "tests/memory/test_lancedb_update.py",
            "tests/memory/test_lancedb_filter_escaping.py",
            "tests/memory/test_dimension_mismatch.py",
        ),
        packages=("crewai==1.15.30",),
        source="crewai==1.15.30",
        plugin="support.crewai_lancedb",
        left_out={
            f"tests/memory/{name}": why
            for why, names in (
                (
                    "expects `TypeError` for metadata that is no JSON; here it is `InvalidInput`",
                    ("test_lancedb_update.py::test_update_serialization_failure_preserves_existing_record",),
                ),
                (
                    "asks for a part of the name of a scope; here a scope has those below it",
                    (
                        "test_lancedb_filter_escaping.py::"
                        "test_percent_underscore_and_backslash_in_scope_names_match_literally",
                    ),
                ),
                (
                    "compares the vectors of records; here they are not read back",
                    ("test_lancedb_update.py::test_update_replaces_existing_record",),
                ),
                (
                    "expects CrewAI's error for vectors of another model; here it is `DimensionMismatch`",
                    tuple(
                        f"test_dimension_mismatch.py::test_lancedb_{name}"
                        for name in (
                            "save_mismatch_raises",
                            "mixed_batch_mismatch_raises",
                            "mixed_batch_on_fresh_store_raises",
                            "search_mismatch_raises",
                            "reopened_store_detects_mismatch",
                        )
                    ),
                ),
                (
                    "updates a record with a vector; here the product embeds the new text",
                    ("test_dimension_mismatch.py::test_lancedb_update_mismatch_raises",),
                ),
                (
                    "gives an emptied storage another model; here `memoranda reembed` does",
                    (
                        "test_dimension_mismatch.py::"
                        "test_memory_reset_all_rebuilds_reopened_store_with_new_dimension",
                    ),
                ),
            )
            for name in names
        },
        own=("tests/integrations/test_crewai.py",),
    ),
)
"""Every suite: one entry adds one."""


@dataclass(frozen=True)
class Ran:
    """The result of a suite: tests by outcome, the version of the client, and what pytest printed."""

    suite: Suite
    counts: Mapping[str, int]
    version: str
    printed: str

    @property
    def failed(self) -> bool:
        """Whether a test failed, or none ran."""
        return not self.counts.get("passed") or any(
            self.counts.get(outcome) for outcome in ("failed", "errors", "error")
        )

    def row(self) -> str:
        """The line of the table."""
        suite, passed = self.suite, self.counts.get("passed", 0)
        total = sum(self.counts.get(outcome, 0) for outcome in RAN)
        return f"| {suite.adapter} | {suite.client} {self.version} | {suite.name} | {passed} / {total} |\n"


def run(suite: Suite, folder: Path) -> Ran:
    """Runs a suite, and the tests of this repository that need the same packages, in a new folder.

    Raises:
        AssertionError: a test of this repository failed, or was skipped, with the framework installed.
    """
    python = environment(suite.packages, folder / "venv")
    version = suite.version or _version(python, suite.client)
    if suite.own:
        counts, printed = _pytest(python, ROOT, suite.own, [])
        assert set(counts) <= {"passed", "warnings", "warning"}, printed
    place = ROOT if suite.source is None else source_of(suite.source, folder / "source")
    options = [word for name in suite.left_out for word in ("--deselect", name)]
    if suite.plugin:
        options += ["-p", suite.plugin]
    counts, printed = _pytest(python, place, suite.files, options)
    return Ran(suite, counts, version, printed)


def _version(python: str, package: str) -> str:
    program = f"import importlib.metadata as m; print(m.version({package!r}))"
    ended = subprocess.run([python, "-c", program], check=True, capture_output=True, text=True)
    return ended.stdout.strip()


def environment(packages: Sequence[str], folder: Path) -> str:
    """The Python of a new virtual environment with these packages, which also sees those of this Python."""
    if not packages:
        return sys.executable
    venv.create(folder, symlinks=True)
    paths = {"base": str(folder), "platbase": str(folder)}
    (Path(sysconfig.get_path("purelib", vars=paths)) / "tests.pth").write_text(
        sysconfig.get_path("purelib") + "\n", "utf-8"
    )
    python = str(folder / "bin" / "python")
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return python


def source_of(package: str, folder: Path) -> Path:
    """The unpacked source archive of `name==version`, downloaded to `folder`."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--no-binary", ":all:", "--no-build-isolation", "--dest", str(folder), package]
    subprocess.run(command, check=True, capture_output=True, text=True)
    (archive,) = folder.glob("*.tar.gz")
    unpack(archive, folder)
    unpacked = folder / archive.name.removesuffix(".tar.gz")
    (unpacked / "pytest.ini").write_text(
        "[pytest]\nasyncio_mode = auto\nmarkers =\n    flaky: may be run again\n"
    )
    return unpacked


def _pytest(
    python: str, place: Path, files: Sequence[str], options: Sequence[str]
) -> tuple[dict[str, int], str]:
    """Tests by outcome, and what pytest printed."""
    command = [python, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", "--rootdir", str(place)]
    paths = os.pathsep.join([str(ROOT / "src"), str(TESTS)])
    ended = subprocess.run(
        [*command, *options, *files],
        cwd=place,
        env={**os.environ, "PYTHONPATH": paths, "HAYSTACK_TELEMETRY_ENABLED": "False"},
        capture_output=True,
        text=True,
        check=False,
    )
    last = ended.stdout.strip().rsplit("\n", 1)[-1]
    counts = {name: int(number) for number, name in re.findall(r"(\d+) ([a-z]+)", last)}
    return counts, ended.stdout + ended.stderr


def written(page: str, row: str, order: Sequence[str]) -> str:
    """The page with this row in its table, in the place of the row of the same adapter, or where `order` has it."""
    before, table = page.split(HEAD)
    rows = re.match(r"(\|.*\n)*", table).group()  # type: ignore[union-attr]
    by_adapter = {_adapter(one): one for one in [*rows.splitlines(keepends=True), row]}
    ordered = "".join(by_adapter[name] for name in order if name in by_adapter)
    return before + HEAD + ordered + table.removeprefix(rows)


def _adapter(row: str) -> str:
    return row.split(" | ")[0].removeprefix("| ")


def main() -> int:
    """Runs the suites whose names contain one of the words, or all; returns 1 if a test failed."""
    parser = argparse.ArgumentParser(prog="framework_suites", description="Run the suites of frameworks.")
    parser.add_argument("names", nargs="*", help="words of the names of adapters; all without them")
    parser.add_argument("--write", action="store_true", help="write the rows to docs/guides/integrations.md")
    given = parser.parse_args()
    failed = False
    print(HEAD, end="", flush=True)
    for suite in SUITES:
        if given.names and not any(name.lower() in suite.adapter.lower() for name in given.names):
            continue
        with TemporaryDirectory() as folder:
            ran = run(suite, Path(folder))
        print(ran.row(), end="", flush=True)
        if ran.failed:
            failed = True
            print(ran.printed, file=sys.stderr)
        elif given.write:
            order = [one.adapter for one in SUITES]
            PAGE.write_text(written(PAGE.read_text("utf-8"), ran.row(), order), "utf-8")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
