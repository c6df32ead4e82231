"""Sizes that the names of models say."""

from __future__ import annotations

import pytest

from memoranda.providers.chat.model_size import is_small


@pytest.mark.parametrize(
    ("model", "small"),
    [
        ("qwen3-8b", True),
        ("Qwen/Qwen3-8B", True),
        ("qwen3:0.6b", True),
        ("llama3.2:3b-instruct-q4_K_M", True),
        ("smollm2-360m", True),
        ("mistral-nemo-12b", False),
        ("qwen3-30b-a3b", False),
        ("mixtral-8x7b", False),
        ("gpt-oss-20b", False),
        ("gpt-5-mini", False),
        ("claude-sonnet-4-5", False),
        ("bert-8bit", False),
        ("", False),
    ],
)
def test_a_model_is_small_by_its_name(model: str, small: bool) -> None:
    assert is_small(model) is small
