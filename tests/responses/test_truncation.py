"""A conversation that is too long for the model, told in the input itself."""

from __future__ import annotations

from typing import Any

import pytest

from memoranda.responses.truncation import ContextTooLong

pytestmark = pytest.mark.rows_in("sqlite")
TURNS = [
    {"role": role, "content": f"{role} {i} " + "word " * 40}
    for i in range(30)
    for role in ("user", "assistant")
]


def test_an_input_that_brings_its_history_is_cut_where_it_may_be(desk: Any) -> None:
    desk.script({"text": "yes", "repeat": True})
    asked = [*TURNS, {"role": "user", "content": "and now?"}]
    with desk.set("model", context_tokens=2_000):
        with pytest.raises(ContextTooLong, match=r"shorten it, or send truncation: auto$"):
            desk.create(asked)
        answer = desk.create(asked, truncation="auto")
    told = desk.told()
    assert told[-1]["content"] == "and now?"
    assert 3 <= len(told) < len(asked)
    assert [message["role"] for message in told[:2]] == ["user", "assistant"]
    assert answer.extensions["history"]["dropped"] == (len(asked) - len(told)) // 2
    kept = desk.run(desk.responses.input_items(answer.id, limit=100))
    assert len(kept.data) == len(asked)  # what is stored is all that was said


@pytest.mark.parametrize("truncation", [None, "disabled", "auto"])
def test_truncation_is_not_named_where_it_does_not_help(desk: Any, truncation: str | None) -> None:
    with desk.set("model", context_tokens=2_000):
        with pytest.raises(
            ContextTooLong, match=r"answer; the context of the model is 2000 tokens: shorten it$"
        ):
            desk.create("word " * 3_000, truncation=truncation)
        with pytest.raises(
            ContextTooLong, match=r"answer; the context of the model is 2000 tokens: shorten it$"
        ):
            desk.create([*TURNS, {"role": "user", "content": "word " * 3_000}], truncation=truncation)


def test_what_fits_is_not_cut(desk: Any) -> None:
    desk.script({"text": "yes", "repeat": True})
    desk.create([*TURNS, {"role": "user", "content": "and now?"}], truncation="auto")
    assert len(desk.told()) == len(TURNS) + 1
