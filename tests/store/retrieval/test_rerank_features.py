"""What a message's place in its conversation is, worked out by hand."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from memoranda.store.retrieval.rerank_features import Candidate, features, style_of
from memoranda.store.retrieval.scoring import FEATURES

MINUTE = 60_000_000
START = 1_683_540_000_000_000  # 8 May 2023, 10:00 UTC
NOW = datetime(2023, 6, 1, tzinfo=UTC)


def said(
    seq: int,
    text: str,
    who: str = "Ana",
    *,
    minute: float = 0.0,
    before: int | None = None,
    after: int | None = None,
    session: str | None = "s",
    role: str | None = None,
) -> Candidate:
    metadata = "{}" if role else f'{{"speaker": "{who}"}}'
    at = START + int(minute * MINUTE)
    return Candidate(seq, "message", session, "c", role, at, at, None, 0, metadata, text, None, before, after)


def of(
    question: str, messages: list[Candidate], around: list[Candidate] = (), **how: bool
) -> dict[str, list[float]]:  # type: ignore[assignment]
    known = {one.seq: (one.content, one.occurred_at) for one in (*messages, *around)}
    similar = 1.0 - 0.1 * np.arange(len(messages))
    table = features(question, NOW, messages, known, similar, **how)
    assert table.shape == (len(messages), len(FEATURES))
    return {name: np.round(table[:, i], 6).tolist() for i, name in enumerate(FEATURES)}


def test_what_neighbours_say_counts_for_the_message_between_them() -> None:
    messages = [
        said(2, "Yes, on the jetty.", "Ben", minute=1, before=1, after=3),
        said(9, "A heron.", minute=600),
    ]
    beside = [said(1, "Did the heron land?", minute=0), said(3, "Which jetty?", minute=2)]
    found = of("Where did the heron land?", messages, beside)
    assert found["coverage"][0] == 0.0
    assert found["around"][0] == pytest.approx(1.0)  # both terms stand beside it
    assert 0.0 < found["coverage"][1] < 1.0
    assert found["around"][1] == 0.0
    assert found["answers"] == [1.0, 0.0]
    assert found["asks"] == [0.0, 0.0]


def test_order_is_that_of_saying_whatever_was_stored_first() -> None:
    late_first = [said(5, "Yes.", minute=1, before=4, after=6)]
    found = of("heron?", late_first, [said(4, "Nice.", minute=2), said(6, "Did it land?", minute=0)])
    assert found["answers"] == [1.0]
    both_before = [said(5, "Yes.", minute=3, before=4, after=6)]
    found = of("heron?", both_before, [said(4, "Did it land?", minute=1), said(6, "Nice.", minute=2)])
    assert found["answers"] == [0.0]
    same_moment = [said(5, "Yes.", before=4, after=6)]
    found = of("heron?", same_moment, [said(4, "Did it land?"), said(6, "Nice.")])
    assert found["answers"] == [1.0]


def test_what_was_said_long_before_is_no_neighbour() -> None:
    messages = [said(2, "Yes.", minute=45, before=1)]
    found = of("heron?", messages, [said(1, "Did the heron land?", minute=0)])
    assert (found["answers"], found["around"]) == ([0.0], [0.0])


def test_a_sitting_is_of_one_place_and_time() -> None:
    messages = [
        said(1, "a", minute=0),
        said(2, "b", minute=0, session="other"),
        said(3, "c", minute=30),
        said(4, "d", minute=30 + 121),
        said(5, "e", minute=0, session="other"),
    ]
    assert of("heron", messages)["sitting"] == pytest.approx([0.8, 0.6, 1.0, 0.0, 0.9])


def test_what_is_no_message_has_the_features_of_its_text_alone() -> None:
    note = said(3, "The heron landed on the jetty.", "Ana", minute=1, before=1, after=4)._replace(kind="note")
    found = of("Where did the heron of Ana land in May 2023?", [said(1, "Did it?"), note])
    for name, (_, value) in found.items():
        assert (value != 0.0) == (name in ("similarity", "coverage", "length")), name


def test_an_unknown_similarity_is_expected_from_the_terms() -> None:
    table = features("heron jetty", NOW, [said(1, "A heron."), said(2, "Tea.")], {}, np.full(2, np.nan))
    with_term, without = table[:, FEATURES.index("similarity")]
    assert with_term > without > 0.0


def test_the_speaker_that_a_question_names() -> None:
    messages = [said(1, "a", "Ana Lima"), said(2, "b", "Ben"), said(3, "c", role="assistant")]
    assert of("What does Ana like?", messages)["speaker"] == [1.0, -1.0, -1.0]
    assert of("what does ana like?", messages)["speaker"] == [1.0, -1.0, -1.0]
    assert of("What do Ana and Ben like?", messages)["speaker"] == [1.0, 1.0, -1.0]
    assert of("What does Cai like?", messages)["speaker"] == [0.0, 0.0, 0.0]
    assert of("What did the assistant say?", messages)["speaker"] == [0.0, 0.0, 0.0]
    assert of("What will they say?", [said(1, "a", "Will")])["speaker"] == [0.0]
    assert of("What does Ana like?", [said(1, "Ana likes tea", "Ana")])["coverage"] == [1.0]


def test_times_and_their_switch() -> None:
    messages = [said(1, "I left on Sunday."), said(2, "I left.", minute=60 * 24 * 40)]
    found = of("When did Ana leave in May 2023?", messages)
    assert found["dated"] == [1.0, 0.0]
    assert found["when"] == [1.0, pytest.approx(1 - 16.42 / 31, abs=0.01)]
    assert of("When did Ana leave in May 2023?", messages, timed=False)["when"] == [0.0, 0.0]
    assert of("Where did Ana go?", messages)["dated"] == [0.0, 0.0]


@pytest.mark.parametrize(
    ("said_by", "style"),
    [
        (["Ana", "Ben", None], "people"),
        (["user", "assistant", "Ana"], "assistant"),
        (["User", None], "assistant"),
        (["Ana", "assistant"], "people"),
        ([None, None], "plain"),
        ([], "plain"),
    ],
)
def test_a_style_is_told_by_its_speakers(said_by: list[str | None], style: str) -> None:
    assert style_of(said_by) == style


def test_what_the_user_said_counts_unless_the_assistant_is_asked_what_it_said() -> None:
    messages = [said(1, "tea", role="user"), said(2, "tea", role="assistant")]
    assert of("Which tea do I like?", messages)["author"] == [1.0, 0.0]
    assert of("Can you tell me which tea I like?", messages)["author"] == [1.0, 0.0]
    assert of("Which tea did you recommend?", messages)["author"] == [0.0, 1.0]
