"""What must have become of each conversation, written by hand before the product had seen either.

Words are compared without case. A group of words is held by one text when all of them are in it; `a|b` is either.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

Words = tuple[str, ...]


class Session(NamedTuple):
    """A conversation session: from its first message to its last, both included; who spoke, by initials."""

    channel: str
    start: str
    end: str
    messages: int
    who: str


class Told(NamedTuple):
    """What a summary must say, anywhere, in its lists, and what it must not say at all."""

    says: Words = ()
    decisions: Words = ()
    questions: Words = ()
    actions: Words = ()
    never: Words = ()


class AsOf(NamedTuple):
    """Facts that were held at a moment, and such as were not."""

    at: datetime
    held: tuple[Words, ...]
    not_held: tuple[Words, ...]


class Question(NamedTuple):
    """A question, and the labels of messages one of which must be among the `top` found; with `plain`, also where
    words alone are compared. `says` is in the text of an assembled context and in an answer, `outdated` should be in no
    answer. `missed` is what the product does not find yet: its test fails on the day when it does."""

    text: str
    found: Words
    says: str
    top: int = 5
    plain: bool = False
    missed: bool = False
    outdated: str | None = None


@dataclass(frozen=True)
class Expected:
    """Everything about one conversation."""

    sessions: tuple[Session, ...]
    summaries: dict[tuple[str, str], Told]
    weeks: dict[tuple[str, str], Words]
    """Weeks (their Mondays) of which there is a summary of summaries, and a choice of words of which it has one."""
    quiet_weeks: tuple[tuple[str, str], ...]
    """Weeks of which there is none."""
    facts: tuple[Words, ...]
    not_facts: tuple[Words, ...]
    """At the end; not even as one that is no longer held: `never_facts`."""
    never_facts: tuple[Words, ...]
    as_of: tuple[AsOf, ...]
    questions: tuple[Question, ...]
    answered: int
    """How many of the questions are answered without a language model, at least."""
    erased: Words
    """Words that were taken back: nothing has them, not the log, no summary, no fact, no export."""
    forgotten: str
    """A person who asks to be forgotten."""
    only_theirs: Words
    """Words that nobody else said."""
    gone_facts: tuple[Words, ...]
    kept_facts: tuple[Words, ...]


def day(text: str) -> datetime:
    return datetime.fromisoformat(f"{text}T12:00:00+00:00")


ATELIER = Expected(
    sessions=(
        Session("studio", "2026-03-02 09:02", "2026-03-02 09:31", 9, "ABC"),
        Session("friends", "2026-03-02 19:40", "2026-03-02 20:18", 7, "ABC"),
        Session("studio", "2026-03-04 14:00", "2026-03-04 14:05", 3, "ABC"),
        Session("friends", "2026-03-05 17:10", "2026-03-05 17:35", 6, "ABC"),
        Session("studio", "2026-03-05 17:12", "2026-03-05 17:29", 4, "AB"),
        Session(
            "studio", "2026-03-06 10:00", "2026-03-06 10:34", 5, "ABC"
        ),  # 10:03 to 10:33 is the gap itself
        Session("friends", "2026-03-10 12:15", "2026-03-10 12:49", 7, "ABC"),
        Session("studio", "2026-03-11 09:30", "2026-03-11 10:10", 7, "ABC"),
        Session("studio", "2026-03-12 16:20", "2026-03-12 16:22", 3, "ABC"),
        Session("friends", "2026-03-14 20:05", "2026-03-14 20:31", 6, "ABC"),
        Session("studio", "2026-03-17 14:00", "2026-03-17 15:20", 8, "ABC"),  # two until the late one came
        Session("studio", "2026-03-18 08:30", "2026-03-18 08:55", 5, "ABC"),
        Session("friends", "2026-03-19 18:30", "2026-03-19 18:52", 6, "ABC"),
        Session("studio", "2026-03-25 11:00", "2026-03-25 11:26", 6, "ABC"),
        Session("friends", "2026-03-26 08:12", "2026-03-26 08:40", 6, "ABC"),
        Session("studio", "2026-03-30 09:10", "2026-03-30 09:48", 7, "ABC"),
        Session("studio", "2026-04-02 13:00", "2026-04-02 13:29", 6, "ABC"),
        Session("friends", "2026-04-03 21:00", "2026-04-03 21:20", 5, "ABC"),
        Session("friends", "2026-04-06 19:02", "2026-04-06 19:30", 5, "ABC"),
        Session("studio", "2026-04-08 10:00", "2026-04-08 10:31", 6, "ABC"),  # of seven, one was deleted
        Session("friends", "2026-04-10 18:05", "2026-04-10 18:20", 4, "ABC"),
        Session("friends", "2026-04-14 12:40", "2026-04-14 13:05", 5, "ABC"),
        Session("studio", "2026-04-15 09:00", "2026-04-15 09:40", 6, "ABCb"),
        Session("friends", "2026-04-18 11:00", "2026-04-18 11:20", 5, "ABC"),
        Session("studio", "2026-04-21 17:00", "2026-04-21 17:25", 5, "ABC"),
        Session("friends", "2026-04-23 20:00", "2026-04-23 20:20", 6, "ABC"),
        Session("studio", "2026-04-28 09:00", "2026-04-28 09:35", 7, "ABC"),
        Session("friends", "2026-04-30 22:10", "2026-04-30 22:14", 4, "ABC"),
    ),
    summaries={
        ("studio", "2026-03-02 09:02"): Told(
            says=("exhibition",), decisions=("May 8",), actions=("van",), never=("Lyon", "Nantes", "May 15")
        ),
        ("friends", "2026-03-02 19:40"): Told(says=("peanuts",), never=("4200", "Rue Mercier")),
        ("studio", "2026-03-05 17:12"): Told(
            says=("Quiet Water",), actions=("invitation text",), never=("tram", "mint")
        ),
        ("studio", "2026-03-06 10:00"): Told(says=("Turin", "Nantes"), decisions=("Turin",)),
        ("studio", "2026-03-11 09:30"): Told(
            says=("Maison Delorme",), questions=("storage room",), actions=("call Maison Delorme",)
        ),
        ("studio", "2026-03-17 14:00"): Told(says=("poster",), decisions=("blue",)),
        ("studio", "2026-03-30 09:10"): Told(
            decisions=("May 15",), actions=("rental company",), never=("May 8", "Turin")
        ),
        ("studio", "2026-04-02 13:00"): Told(
            says=("Turin", "strike"), decisions=("Nantes",), actions=("300 copies",)
        ),
        ("friends", "2026-04-06 19:02"): Told(says=("Porto",), never=("Lyon",)),
        ("studio", "2026-04-08 10:00"): Told(
            says=("frames",), actions=("sign the order",), never=("8841", "75 euros")
        ),
        ("friends", "2026-04-14 12:40"): Told(says=("555-0187",), never=("555-0142",)),
        ("studio", "2026-04-21 17:00"): Told(decisions=("red poster",)),
        ("studio", "2026-04-28 09:00"): Told(actions=("speech",), never=("4200",)),
    },
    weeks={
        ("studio", "2026-03-02"): ("exhibition", "catalogue", "May 8", "Quiet Water"),
        ("friends", "2026-03-02"): ("dinner", "peanuts", "555-0142", "Lyon"),
        ("friends", "2026-03-09"): ("Mont Verdun", "kilometres", "scarf"),
        ("studio", "2026-03-16"): ("poster", "metres"),
        ("studio", "2026-03-30"): ("May 15", "Nantes"),
        ("friends", "2026-04-06"): ("Porto", "lighthouse", "fog"),
        ("friends", "2026-04-13"): ("555-0187", "strawberries", "river"),
    },
    quiet_weeks=(("studio", "2026-05-04"), ("friends", "2026-05-04"), ("friends", "2026-02-23")),
    facts=(
        ("live in Porto now|lives in Porto",),
        ("coffee",),
        ("555-0187",),
        ("peanuts",),
        ("Otto",),
        ("4200",),
        ("exhibition", "May 15"),
        ("print the catalogue in Nantes",),
        ("red poster",),
    ),
    not_facts=(
        ("Lyon",),
        ("prefer tea|prefers tea",),
        ("555-0142",),
        ("exhibition", "May 8"),
        ("print the catalogue in Turin",),
        ("blue poster",),
    ),
    never_facts=(("8841",), ("75 euros",), ("Chloe lives in Porto",)),
    as_of=(
        AsOf(
            day("2026-03-10"),
            held=(
                ("Lyon",),
                (" tea",),
                ("555-0142",),
                ("exhibition", "May 8"),
                ("print the catalogue in Turin",),
                ("Otto",),
            ),
            not_held=(
                ("live in Porto now|lives in Porto",),
                ("coffee",),
                ("555-0187",),
                ("May 15",),
                ("print the catalogue in Nantes",),
            ),
        ),
        AsOf(
            day("2026-03-28"),
            held=(("Lyon",), ("coffee",), ("May 8",), ("blue poster",)),
            not_held=(
                ("live in Porto now|lives in Porto",),
                ("prefer tea|prefers tea",),
                ("May 15",),
                ("red poster",),
            ),
        ),
        AsOf(
            day("2026-04-04"),
            held=(("Lyon",), ("May 15",), ("print the catalogue in Nantes",), ("555-0142",)),
            not_held=(
                ("live in Porto now|lives in Porto",),
                ("May 8",),
                ("print the catalogue in Turin",),
                ("555-0187",),
            ),
        ),
        AsOf(
            day("2026-04-20"),
            held=(
                ("live in Porto now|lives in Porto",),
                ("555-0187",),
                ("blue poster",),
                ("May 15",),
                ("peanuts",),
            ),
            not_held=(("Lyon",), ("555-0142",), ("red poster",), ("May 8",)),
        ),
    ),
    questions=(
        Question("When does the exhibition open?", ("opening2",), "May 15", plain=True, outdated="May 8"),
        Question("What is Chloe's phone number now?", ("phone2",), "555-0187", outdated="555-0142"),
        Question("Where does Ana live?", ("porto",), "Porto", outdated="Lyon"),
        Question("What is Ana allergic to?", ("peanuts",), "peanuts", 3, plain=True),
        Question("Which caterer makes the food?", ("caterer", "reply"), "Maison Delorme", plain=True),
        Question("Where was the scarf in the end?", ("scarf",), "backpack", plain=True),
        Question("How much are the paintings worth for the insurance?", ("paintings",), "31000"),
        Question("What is the name of Ben's dog?", ("otto",), "Otto", 3, plain=True),
        Question("Where do we print the catalogue?", ("nantes",), "Nantes", plain=True, outdated="in Turin"),
        Question("What did the printer in Turin ask for 300 copies?", ("quotes",), "640", 3, plain=True),
    ),
    answered=10,
    erased=("8841", "75 euros"),
    forgotten="Ben",
    only_theirs=("Poleymieux", "snoring", "lighthouse", "rental company", "headaches"),
    gone_facts=(("coffee",), ("dog", "Otto")),
    kept_facts=(("live in Porto now|lives in Porto",), ("peanuts",), ("555-0187",), ("May 15",)),
)

HARBOR = Expected(
    sessions=(
        Session("ops", "2025-09-01 08:58", "2025-09-01 09:22", 8, "dYM"),
        Session("lunch", "2025-09-01 12:31", "2025-09-01 12:41", 5, "dYM"),
        Session("ops", "2025-09-03 16:05", "2025-09-03 16:40", 5, "dYM"),
        Session("lunch", "2025-09-05 13:00", "2025-09-05 13:02", 2, "YM"),
        Session("ops", "2025-09-08 10:00", "2025-09-08 10:52", 7, "dYM"),  # 10:11 to 10:41 is the gap itself
        Session("ops", "2025-09-10 15:20", "2025-09-10 15:33", 4, "dYM"),
        Session("lunch", "2025-09-12 12:05", "2025-09-12 12:30", 5, "dYM"),
        Session("ops", "2025-09-16 09:30", "2025-09-16 10:23", 6, "dYM"),
        Session("ops", "2025-09-18 18:30", "2025-09-18 19:44", 6, "dYM"),  # two until the late one came
        Session("lunch", "2025-09-23 13:10", "2025-09-23 13:31", 6, "dYM"),
        Session("ops", "2025-09-25 11:00", "2025-09-25 11:22", 6, "dYM"),
        Session("ops", "2025-09-29 09:00", "2025-09-29 09:28", 7, "dYM"),
        Session("lunch", "2025-10-02 12:40", "2025-10-02 12:50", 4, "dYM"),
        Session("ops", "2025-10-06 10:10", "2025-10-06 10:55", 7, "dYM"),
        Session("lunch", "2025-10-09 17:02", "2025-10-09 17:11", 4, "dYM"),
        Session("ops", "2025-10-13 09:10", "2025-10-13 09:36", 5, "dYM"),  # of six, one was deleted
        Session("ops", "2025-10-15 14:00", "2025-10-15 14:09", 4, "dMb"),
        Session("ops", "2025-10-20 08:00", "2025-10-20 08:40", 5, "dYM"),
        Session("lunch", "2025-10-24 12:12", "2025-10-24 12:33", 4, "dYM"),
        Session("ops", "2025-10-31 16:00", "2025-10-31 16:10", 4, "dYM"),
    ),
    summaries={
        ("ops", "2025-09-01 08:58"): Told(
            says=("October 6",), actions=("certificates",), never=("Gdansk", "NATS")
        ),
        ("lunch", "2025-09-01 12:31"): Told(says=("coriander",), never=("RabbitMQ",)),
        ("ops", "2025-09-03 16:05"): Told(says=("dana@harborlight.example",)),
        ("ops", "2025-09-08 10:00"): Told(says=("1300",), actions=("index",), never=("2100",)),
        ("ops", "2025-09-10 15:20"): Told(questions=("billing dashboard",)),
        ("ops", "2025-09-16 09:30"): Told(says=("Krakow",), actions=("hotels",), never=("2700",)),
        ("ops", "2025-09-18 18:30"): Told(says=("staging",)),
        ("ops", "2025-09-29 09:00"): Told(says=("October 20",), actions=("upload form",), never=("Wroclaw",)),
        ("ops", "2025-10-06 10:10"): Told(decisions=("NATS",), never=("October 20",)),
        ("ops", "2025-10-13 09:10"): Told(says=("dana.k@northquay.example",), never=("tangerine", "800 GB")),
        ("ops", "2025-10-31 16:00"): Told(actions=("plan for November",)),
    },
    weeks={
        ("ops", "2025-09-01"): ("October 6", "RabbitMQ", "dana@harborlight.example"),
        ("ops", "2025-09-08"): ("1300", "2100", "billing dashboard"),
        ("ops", "2025-09-15"): ("offsite", "Krakow", "staging"),
        ("ops", "2025-10-13"): ("dana.k@northquay.example", "1300", "650"),
    },
    quiet_weeks=(("lunch", "2025-09-15"), ("lunch", "2025-10-13"), ("lunch", "2025-10-27")),
    facts=(
        ("Leeds",),
        ("dana.k@northquay.example",),
        ("vegan",),
        ("coriander",),
        ("October 20",),
        ("offsite", "Wroclaw"),
        ("NATS", "queue"),
    ),
    not_facts=(
        ("Gdansk",),
        ("dana@harborlight.example",),
        ("on October 6",),
        ("offsite is in Krakow",),
        ("RabbitMQ", "queue"),
    ),
    never_facts=(("tangerine",), ("800 GB",), ("Mirko", "moved to Leeds"), ("Mirko", "lives in Leeds")),
    as_of=(
        AsOf(
            day("2025-09-05"),
            held=(("Gdansk",), ("RabbitMQ",), ("on October 6",), ("dana@harborlight.example",), ("vegan",)),
            not_held=(("Leeds",), ("NATS",), ("October 20",), ("Krakow",), ("dana.k@northquay.example",)),
        ),
        AsOf(
            day("2025-09-20"),
            held=(("offsite is in Krakow",), ("Gdansk",), ("coriander",)),
            not_held=(("offsite", "Wroclaw"), ("Leeds",)),
        ),
        AsOf(
            day("2025-10-01"),
            held=(("offsite", "Wroclaw"), ("October 20",), ("Gdansk",), ("RabbitMQ",)),
            not_held=(("offsite is in Krakow",), ("on October 6",), ("NATS",)),
        ),
        AsOf(
            day("2025-10-15"),
            held=(("Leeds",), ("NATS",), ("dana.k@northquay.example",), ("October 20",)),
            not_held=(("Gdansk",), ("RabbitMQ", "queue"), ("dana@harborlight.example",)),
        ),
    ),
    questions=(
        Question(
            "When is the go-live of the ticket portal?",
            ("golive2",),
            "October 20",
            plain=True,
            outdated="October 6",
        ),
        Question("Where does dana live now?", ("leeds",), "Leeds", missed=True),
        Question(
            "In which city will the team offsite take place?",
            ("wroclaw",),
            "Wroclaw",
            outdated="is in Krakow",
        ),
        Question("Which message queue did we choose?", ("queue2",), "NATS", outdated="RabbitMQ"),
        Question("What food can Mirko not stand?", ("coriander",), "coriander", 3, plain=True),
        Question("Who does not eat anything from animals?", ("vegan",), "vegan"),
        Question(
            "What is dana's email address?",
            ("mail2",),
            "dana.k@northquay.example",
            3,
            plain=True,
            outdated="dana@harborlight.example",
        ),
        Question(
            "How many requests per second did the load test reach?", ("load", "reply"), "1300", 3, plain=True
        ),
        Question("Where was the stolen mug?", ("mug",), "dishwasher", 5),
        Question("How fast did Mirko run the half marathon?", ("run",), "1:52", 5),
    ),
    answered=10,
    erased=("tangerine", "800 GB"),
    forgotten="Yusuf",
    only_theirs=("certificates", "the twins", "dishwasher", "pen test", "museums"),
    gone_facts=(("vegan",),),
    kept_facts=(("Leeds",), ("coriander",), ("NATS", "queue")),
)
