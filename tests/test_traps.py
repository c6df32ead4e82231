"""The traps of SPEC 9 that the core can fall into, each with the tests that hold it down."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

HERE = Path(__file__).parent

TRAPS = {
    "chunk count with overlap": [
        "text/test_chunking.py::test_chunk_count_and_overlap_where_a_word_is_a_token",
        "text/test_chunking.py::test_eleven_characters_are_one_chunk",
        "knowledge/test_stores.py::test_as_many_chunks_as_the_arithmetic_says",
    ],
    "stable listing order, after/before paging complete under inserts": [
        "store/retrieval/test_search.py::test_pages_hold_every_row_once",
        "store/retrieval/test_search.py::test_pages_miss_nothing_while_others_write",
        "knowledge/test_files.py::test_pages_hold_every_file_once_while_others_come",
        "knowledge/test_files.py::test_stores_and_their_files_are_paged_both_ways",
    ],
    "restart keeps vectors and identical search results": [
        "store/test_store.py::test_a_restart_changes_no_answer",
        "store/test_store.py::test_a_second_restart_changes_no_score",
        "store/test_store.py::test_a_damaged_cache_is_made_again",
        "knowledge/test_restart.py::test_a_restart_changes_no_answer",
    ],
    "consolidation idempotent": [
        "facts/test_versions.py::test_consolidating_twice_changes_nothing_the_second_time",
        "facts/test_versions.py::test_a_consolidation_goes_with_any_of_its_sources",
    ],
    "threshold 0 means no floor, None means default": [
        "store/retrieval/test_search.py::test_none_takes_the_configured_floor_and_zero_is_no_floor",
        "store/retrieval/test_search.py::test_a_threshold_is_a_floor_on_the_cosine",
        "knowledge/test_stores.py::test_no_threshold_and_zero_are_no_floor",
        "knowledge/test_stores.py::test_filters_threshold_and_limit_hold_together",
    ],
    "tags and filters before the limit": [
        "store/retrieval/test_search.py::test_conditions_go_before_the_limit",
        "store/test_access.py::test_every_way_of_asking_finds_the_rows_of_the_model",
        "knowledge/test_stores.py::test_filters_threshold_and_limit_hold_together",
    ],
    "no embedding in any response": [
        "store/test_store.py::test_no_answer_holds_an_embedding",
        "knowledge/test_stores.py::test_no_embedding_is_in_any_answer",
    ],
    "a provider outage neither blocks writes nor mixes vector spaces": [
        "store/test_store.py::test_an_outage_blocks_no_write_and_shows_in_the_search",
        "store/test_store.py::test_an_outage_longer_than_every_retry_heals",
        "store/test_store.py::test_another_model_never_answers_for_the_configured_one",
        "store/test_store.py::test_going_back_to_a_model_says_what_it_missed",
        "knowledge/test_pipeline.py::test_while_the_embedder_is_away_a_file_waits",
        "knowledge/test_stores.py::test_without_the_model_words_answer_and_say_so",
    ],
    "equal timestamps keep order": [
        "memories/test_memories.py::test_messages_of_the_same_moment_keep_their_order"
    ],
    "same-millisecond messages do not overwrite": [
        "memories/test_memories.py::test_the_same_words_said_twice_are_two_messages",
        "memories/test_memories.py::test_messages_of_the_same_moment_keep_their_order",
    ],
    "multi-byte text never cut inside a character": [
        "text/test_chunking.py::test_chunks_hold_every_character_and_fit",
        "text/test_highlights.py::test_a_snippet_is_the_text_at_its_offsets",
    ],
    "missing-only backfill processes all": [
        "store/test_store.py::test_reembedding_misses_none_and_can_be_interrupted",
        "store/test_store.py::test_a_cancelled_reembedding_goes_on_where_it_stopped",
    ],
    "dimension mismatch refused": [
        "store/test_store.py::test_a_model_with_another_dimension_is_refused",
        "memories/test_memories.py::test_a_wrong_dimension_is_its_own_error",
    ],
    "cosine equal on all backends for unnormalised vectors": [
        "indexes/vector/test_vector_index.py::test_cosines_are_true_whatever_the_lengths",
        "store/retrieval/test_search.py::test_a_threshold_is_a_floor_on_the_cosine",
    ],
    "the hash embedder's sign bit independent of its bucket bit": [
        "providers/embeddings/test_hash.py::test_the_sign_is_independent_of_the_bucket"
    ],
    "no embedding call inside a database transaction": [
        "store/test_store.py::test_a_model_that_writes_during_its_work_does_not_deadlock",
        "store/test_store.py::test_no_model_is_asked_on_the_writing_thread",
        "knowledge/test_pipeline.py::test_a_model_that_writes_during_its_work_does_not_deadlock",
    ],
    "what is forgotten is gone from every file": [
        "store/test_store.py::test_what_is_forgotten_is_in_no_file",
        "store/test_store.py::test_a_vector_of_a_model_used_before_is_forgotten_too",
    ],
    "foreign-tenant add / list / remove on store files is 404": [
        "knowledge/test_access.py::test_the_whole_table",
        "knowledge/test_access.py::test_nothing_of_one_is_in_anothers_answer",
    ],
    "restart keeps stores and files": [
        "knowledge/test_restart.py::test_a_restart_changes_no_answer",
        "knowledge/test_restart.py::test_work_that_was_under_way_goes_on_after_a_restart",
    ],
    "client disconnect does not kill ingestion": [
        "knowledge/test_restart.py::test_who_hangs_up_does_not_stop_the_indexing",
        "knowledge/test_restart.py::test_jobs_of_who_hung_up_are_not_left_waiting",
        "knowledge/test_files.py::test_a_row_that_is_written_keeps_its_bytes",
    ],
    "character offsets in citations": [
        "knowledge/test_stores.py::test_every_strategy_from_file_to_passage",
        "knowledge/test_stores.py::test_a_passage_is_widened_by_its_neighbours",
        "knowledge/test_stores.py::test_pieces_put_together_keep_their_places",
    ],
    "what is deleted is in no table, index or file": [
        "knowledge/test_deletion.py::test_a_deleted_file",
        "knowledge/test_deletion.py::test_everything_of_a_tenant",
    ],
    "global never leaks session rows": ["store/test_access.py::test_global_never_leaks"],
    "the last sentence of a long note is findable": [
        "store/test_store.py::test_the_last_sentence_of_a_long_note_is_found",
        "store/test_store.py::test_the_default_model_finds_the_last_sentence_too",
    ],
}


def names_in(path: Path) -> set[str]:
    """The names of the tests in a file, those in classes too."""
    tree = ast.parse(path.read_text("utf-8"))
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }


@pytest.mark.parametrize("trap", TRAPS)
def test_every_trap_has_its_tests(trap: str) -> None:
    assert TRAPS[trap]
    for named in TRAPS[trap]:
        file, _, name = named.partition("::")
        assert name in names_in(HERE / file), f"{trap}: {named} is not there"
