"""What the messages around a message add to its score: a line without a word of the question, between two lines that
have all of its words, stays behind a line that answers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest

import memoranda
from memoranda.app.blocking import BlockingMemories

START = datetime(2026, 3, 2, 10, tzinfo=UTC)


class Talk(NamedTuple):
    """A conversation of two. Each speaks in turns; `>` marks the line between, `*` the line that answers."""

    question: str
    speakers: tuple[str, str]
    lines: list[str]

    def at(self, mark: str) -> int:
        """Return the place of the marked line."""
        return next(place for place, line in enumerate(self.lines) if line[0] == mark)

    def texts(self) -> list[str]:
        return [line.lstrip("*>") for line in self.lines]


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


TALKS = {
    "heron": Talk(
        "Where did Ben see the heron?",
        ("Ana", "Ben"),
        [
            "Good morning, did you sleep well?",
            "*I watched the heron on the old jetty for an hour.",
            "Nice, I was baking bread all morning.",
            "Save me a slice.",
            "Cleo asked me where Ben did see the heron.",
            ">Sorry, my phone rang, one moment please.",
            "So where did Ben see the heron, she wants to know.",
            "Let us talk tonight.",
        ],
    ),
    "passport": Talk(
        "Where is the passport of Nadia?",
        ("Nadia", "Omar"),
        [
            "The taxi comes at six.",
            "Where is the passport of Nadia?",
            ">Hold on, my kettle boils over.",
            "I keep asking: where is the passport of Nadia?",
            "Do not panic.",
            "I am not panicking.",
            "*My passport lies in the blue drawer beside the bed.",
            "Great, then we can go.",
        ],
    ),
    "marathon": Talk(
        "How fast did Lena run the marathon?",
        ("Lena", "Paul"),
        [
            "*I finished the marathon in three hours and twelve minutes.",
            "Congratulations!",
            "My legs hurt.",
            "Have a hot bath.",
            "Later.",
            "How fast did Lena run the marathon, asked my sister.",
            ">A cat jumped onto our table again.",
            "And my brother too: how fast did Lena run the marathon?",
            "What a family.",
        ],
    ),
    "printer": Talk(
        "Which printer did the office buy?",
        ("Ida", "Tom"),
        [
            "Did you read the memo?",
            "Which printer did the office buy, it asks.",
            ">I have to leave for lunch now.",
            "Which printer did the office buy? Nobody knows.",
            "See you at one.",
            "Enjoy your meal.",
            "By the way, traffic is awful.",
            "*They bought a Brother laser printer for the office.",
            "At last.",
        ],
    ),
    "allergy": Talk(
        "What food is Mia allergic to?",
        ("Mia", "Jon"),
        [
            "*Peanuts give me a rash, I am allergic to them.",
            "I will tell the cook.",
            "Thank you.",
            "The weather turns cold.",
            "Take a coat.",
            "The cook asks what food is Mia allergic to.",
            ">Oh, somebody rings at our door.",
            "Again: what food is Mia allergic to?",
            "Call me back later.",
        ],
    ),
    "dog": Talk(
        "What is the name of the dog?",
        ("Eve", "Kim"),
        [
            "We adopted a puppy!",
            "*Biscuit, our dog, ate my shoe.",
            "How naughty.",
            "I need new ones.",
            "Go shopping tomorrow.",
            "Grandma asks what is the name of the dog.",
            ">I burnt my tongue with soup.",
            "What is the name of the dog, she says once more.",
            "Poor grandma.",
        ],
    ),
    "meeting": Talk(
        "When is the budget meeting?",
        ("Rob", "Sue"),
        [
            "When is the budget meeting?",
            ">My screen went black.",
            "Please, when is the budget meeting?",
            "Restarting.",
            "Take your time.",
            "I am back.",
            "Good.",
            "*The budget meeting is on Thursday at ten.",
        ],
    ),
    "sister": Talk(
        "Where does the sister of Igor live?",
        ("Igor", "Vera"),
        [
            "*My sister moved to Lisbon and lives near the river.",
            "Lovely city.",
            "Full of hills.",
            "Good for the knees.",
            "Ha.",
            "My boss asks where does the sister of Igor live.",
            ">I need milk and sugar.",
            "Really, where does the sister of Igor live?",
            "Your boss is curious.",
        ],
    ),
    "password": Talk(
        "What is the code of the garage door?",
        ("Max", "Lea"),
        [
            "What is the code of the garage door?",
            ">Ouch, I hit my toe.",
            "Come on, what is the code of the garage door?",
            "It hurts.",
            "Put some ice on.",
            "Better now.",
            "Fine.",
            "*Type 4711 and the garage door opens.",
        ],
    ),
    "guitar": Talk(
        "Who taught Sam to play the guitar?",
        ("Sam", "Zoe"),
        [
            "*My uncle Theo taught me to play the guitar when I was nine.",
            "I took piano lessons.",
            "Sounds expensive.",
            "It was.",
            "Shall we eat?",
            "Who taught Sam to play the guitar, the band asks.",
            ">Pizza or noodles?",
            "First tell me who taught Sam to play the guitar.",
            "Noodles then.",
        ],
    ),
    "deploy": Talk(
        "Why did the deploy fail on Monday?",
        ("Dev", "Ops"),
        [
            "Why did the deploy fail on Monday?",
            ">Coffee first.",
            "Seriously, why did the deploy fail on Monday?",
            "I need ten minutes.",
            "All right.",
            "Reading logs.",
            "And?",
            "*The disk of the database was full, so the deploy failed on Monday.",
        ],
    ),
    "violin": Talk(
        "How much did Clara pay for the violin?",
        ("Clara", "Finn"),
        [
            "*The violin cost me nine hundred euros.",
            "A bargain.",
            "I think so.",
            "Is it old?",
            "A century.",
            "How much did Clara pay for the violin, my teacher asks.",
            ">It rains cats and dogs here.",
            "How much did Clara pay for the violin? He insists.",
            "Tell him to be patient.",
        ],
    ),
    "heron in other words": Talk(
        "Where did Ben see the heron?",
        ("Ana", "Ben"),
        [
            "Good morning, did you sleep well?",
            "*He watched that grey bird from the old jetty.",
            "Nice, I was baking bread all morning.",
            "Save me a slice.",
            "Cleo asked me where Ben did see the heron.",
            ">Sorry, my phone rang, one moment please.",
            "So where did Ben see the heron, she wants to know.",
            "Let us talk tonight.",
        ],
    ),
    "marathon in other words": Talk(
        "How fast did Lena run the marathon?",
        ("Lena", "Paul"),
        [
            "*I finished the 42 kilometres in three hours and twelve minutes.",
            "Congratulations!",
            "My legs hurt.",
            "Have a hot bath.",
            "Later.",
            "How fast did Lena run the marathon, asked my sister.",
            ">A cat jumped onto our table again.",
            "And my brother too: how fast did Lena run the marathon?",
            "What a family.",
        ],
    ),
    "meeting in other words": Talk(
        "When is the budget meeting?",
        ("Rob", "Sue"),
        [
            "When is the budget meeting?",
            ">My screen went black.",
            "Please, when is the budget meeting?",
            "Restarting.",
            "Take your time.",
            "I am back.",
            "Good.",
            "*We will discuss the spending plan on Thursday at ten.",
        ],
    ),
    "guitar in other words": Talk(
        "Who taught Sam to play the guitar?",
        ("Sam", "Zoe"),
        [
            "*My uncle Theo gave me lessons on six strings when I was nine.",
            "I took piano lessons.",
            "Sounds expensive.",
            "It was.",
            "Shall we eat?",
            "Who taught Sam to play the guitar, the band asks.",
            ">Pizza or noodles?",
            "First tell me who taught Sam to play the guitar.",
            "Noodles then.",
        ],
    ),
    "deploy in other words": Talk(
        "Why did the deploy fail on Monday?",
        ("Dev", "Ops"),
        [
            "Why did the deploy fail on Monday?",
            ">Coffee first.",
            "Seriously, why did the deploy fail on Monday?",
            "I need ten minutes.",
            "All right.",
            "Reading logs.",
            "And?",
            "*The disk of the database was full, so the release broke.",
        ],
    ),
    "violin in other words": Talk(
        "How much did Clara pay for the violin?",
        ("Clara", "Finn"),
        [
            "*The instrument cost me nine hundred euros.",
            "A bargain.",
            "I think so.",
            "Is it old?",
            "A century.",
            "How much did Clara pay for the violin, my teacher asks.",
            ">It rains cats and dogs here.",
            "How much did Clara pay for the violin? He insists.",
            "Tell him to be patient.",
        ],
    ),
    "heron twice": Talk(
        "Where did Ben see the heron?",
        ("Ana", "Ben"),
        [
            "Morning.",
            "Ben did see the heron where the reeds grow.",
            ">My coffee is cold.",
            "Yes, that is where Ben did see the heron, in the reeds.",
            "I see.",
            "More coffee?",
            "Please.",
            "*Later the heron stood on the jetty.",
        ],
    ),
    "fence": Talk(
        "What colour did Mia paint the fence?",
        ("Jo", "Al"),
        [
            "What colour did Mia paint the fence? Green.",
            ">I lost my keys.",
            "The colour Mia did paint the fence is green, what a sight.",
            "Found them.",
            "Good.",
            "Let us go.",
            "*The fence is bright green now.",
        ],
    ),
}


@pytest.fixture(scope="module")
def memories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlockingMemories]:
    """Every conversation, a session each, embedded with the English model."""
    with memoranda.open(tmp_path_factory.mktemp("talks"), embedder={"url": "local:arctic-embed-s"}) as rc:
        rc.memories.add_many(
            [
                {
                    "content": text,
                    "kind": "message",
                    "session_id": name,
                    "metadata": {"speaker": talk.speakers[n % 2]},
                    "occurred_at": START + timedelta(minutes=n),
                }
                for name, talk in TALKS.items()
                for n, text in enumerate(talk.texts())
            ]
        )
        yield rc.memories


@pytest.mark.parametrize("name", TALKS)
def test_a_line_between_two_that_ask_stays_behind_one_that_answers(
    memories: BlockingMemories, name: str
) -> None:
    talk = TALKS[name]
    texts, between = talk.texts(), talk.at(">")
    before, line, after = (words(text) for text in texts[between - 1 : between + 2])
    assert not words(talk.question) & line
    assert words(talk.question) <= before & after
    found = memories.search(talk.question, scopes=[f"session:{name}"], limit=20)
    assert found.degraded == []
    order = [hit.memory.content for hit in found.results]
    answer = order.index(texts[talk.at("*")])
    assert texts[between] not in order[:answer]
