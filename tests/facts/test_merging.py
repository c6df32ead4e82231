"""What two facts are to each other, and where a new one stands among its versions."""

from __future__ import annotations

from functools import partial
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.facts.decay import DAY, days_unused, freshness, value
from memoranda.facts.grounding import grounded
from memoranda.facts.judging import verdicts
from memoranda.facts.merging import Known, Relation, place, relation, supported
from support.growth import grows_in_proportion

AGAINST = Relation.CONTRADICTS


@pytest.mark.parametrize(
    ("new", "old", "is_"),
    [
        ("Mara lives in Berlin", "Mara lives in Munich", AGAINST),
        ("Mara moved from Munich to Berlin with her cat", "Mara lives in Munich", AGAINST),
        ("Mara works at Globex", "Mara works at Acme", AGAINST),
        ("Mara left Acme", "Mara works at Acme", AGAINST),
        ("Mara no longer works at Acme", "Mara works at Acme", AGAINST),
        ("Mara's budget is 500 euros", "Mara's budget is 400 euros", AGAINST),
        ("It was decided to open on May 15", "It was decided to open on May 8", AGAINST),
        ("The meeting is on Tuesday", "The meeting is on Monday", AGAINST),
        ("Mara has three kids", "Mara has two kids", AGAINST),
        ("Mara has 3 kids", "Mara has two kids", AGAINST),
        ("Mara still has 3 kids", "Mara has 2 kids", AGAINST),
        ("Mara dislikes coffee", "Mara likes coffee", AGAINST),
        ("Mara is not allergic to bees", "Mara is allergic to bees", AGAINST),
        ("Mara prefers coffee over tea", "Mara prefers tea over coffee", AGAINST),
        ("The user prefers dark mode", "The user prefers light mode", AGAINST),
        ("Mara prefers Ruby for scripting", "Mara prefers Python for scripting", AGAINST),
        ("Mara switched from Vim to Emacs", "Mara uses Vim", AGAINST),
        ("Mara is not vegan anymore", "Mara is vegan", AGAINST),
        ("Mara does not like olives any more", "Mara likes olives", AGAINST),
        ("Mara doesn't live in Rome any longer", "Mara moved to Rome", AGAINST),
        ("Mara isn't working at Acme anymore", "Mara works at Acme as a nurse", AGAINST),
        ("Mara is no longer vegan", "Mara is vegan again", AGAINST),
        ("Mara quit their job at Acme", "Mara works at Acme", AGAINST),
        ("Mara left her position as a nurse", "Mara works as a nurse", AGAINST),
        ("Mara resigned from Acme", "Mara works at Acme", AGAINST),
        ("Mara moved away from Rome", "Mara lives in Rome", AGAINST),
        ("Mara is married to Tim since Saturday", "Mara is single", AGAINST),
        ("Mara got divorced", "Mara is married", AGAINST),
        ("Mara wohnt in Berlin", "Mara wohnt in Köln", AGAINST),
        ("Mara wohnt jetzt in Wien", "Mara wohnt in Köln", AGAINST),
        ("Mara lebt inzwischen in Wien", "Mara wohnt in Köln", AGAINST),
        ("Mara wohnt seit letztem Mai in Wien", "Mara wohnt in Köln", AGAINST),
        ("Mara arbeitet jetzt bei SAP", "Mara arbeitet bei Siemens", AGAINST),
        ("Mara arbeitet seit 2020 bei SAP", "Mara arbeitet jetzt bei Siemens", AGAINST),
        ("Mara wohnt seit Mai nicht mehr in Köln", "Mara wohnt in Köln", AGAINST),
        ("mara likes tea", "Mara likes tea.", Relation.SAME),
        ("Mara really likes green tea", "Mara likes green tea", Relation.NEAR),
        ("Mara has a dog", "Mara has a dog called Rex", Relation.NEAR),
        ("Mara has a dog called Rex", "Mara has a dog", Relation.REFINES),
        ("Mara works at Acme as a nurse", "Mara works at Acme", Relation.REFINES),
        ("Mara enjoys hiking in mountains", "Mara likes hiking in the mountains", Relation.NEAR),
        ("Mara likes green tea", "Mara likes black tea", Relation.OTHER),
        ("Bob likes tea", "Ann likes tea", Relation.OTHER),
        ("Mara's sister likes tea", "Mara likes tea", Relation.OTHER),
        ("Mara's cat is called Bo", "Mara's dog is called Bo", Relation.OTHER),
        ("Mara uses Emacs", "Mara uses Vim", Relation.OTHER),
        ("Mara speaks French", "Mara speaks German", Relation.OTHER),
        ("Mara has two kids", "Mara has 2 kids", Relation.NEAR),
        ("Mara met Ann on Monday", "Mara met Bob on Monday", Relation.OTHER),
        ("Room 101 is booked by the team", "Room 102 is booked by the team", Relation.OTHER),
        ("Mara does not like tea", "Mara likes coffee", Relation.OTHER),
        ("Mara lives in Berlin", "Mara no longer lives in Rome", Relation.OTHER),
        ("Mara no longer lives in Berlin", "Mara lives in Rome", Relation.OTHER),
        ("Mara left her keys at Acme", "Mara works at Acme", Relation.OTHER),
        ("Mara's brother is married", "Mara is single", Relation.OTHER),
        ("Mara does not live in Rome anymore", "Mara's sister lives in Rome", Relation.OTHER),
        ("Mara's sister moved to Rome", "Mara lives in Berlin", Relation.OTHER),
        ("Mara's boss left Acme", "Mara works at Acme", Relation.OTHER),
        ("Mara does not like tea", "Mara's sister likes tea", Relation.OTHER),
        ("Mara's sister no longer lives in Rome", "Mara's sister lives in Rome", AGAINST),
        ("Mara owns boat q7 and its crew", "Mara owns boat q8 and its crew", Relation.OTHER),
        ("Mara owns boat q70 and its crew", "Mara owns boat q75 and its crew", Relation.OTHER),
        ("Mara has two cats", "Mara has three dogs", Relation.OTHER),
        ("Mara likes tea", "Mara does not drink tea in the evening", Relation.OTHER),
        ("Mara eats meat", "Mara does not eat meat on Fridays", Relation.OTHER),
        ("Mara eats meat on Fridays", "Mara does not eat meat", AGAINST),
        ("Mara's husband is at work", "Mara's husband is in Munich", Relation.OTHER),
        ("The meeting is in room 5", "The meeting is at 10", Relation.OTHER),
        ("The meeting is in room 5", "The meeting is in room 6", AGAINST),
        ("The meeting is at noon", "The meeting is at 10", AGAINST),
        ("The cat is in the garden", "The cat is in the house", AGAINST),
    ],
)
def test_what_one_fact_is_to_another(new: str, old: str, is_: Relation) -> None:
    assert relation(new, old) is is_
    if is_ is AGAINST:
        assert relation(old, new) is AGAINST


def test_a_cosine_makes_near_what_does_not_differ() -> None:
    assert (
        relation("Mara's pet is a dog", "Mara owns some hound", 0.96) is Relation.OTHER
    )  # another owner's form
    assert relation("Mara enjoys hiking a lot", "Mara is fond of walks", 0.96) is Relation.NEAR
    assert relation("Mara enjoys hiking a lot", "Mara is fond of walks", 0.94) is Relation.OTHER
    assert relation("Mara walked 5 km there", "Mara hiked 7 km yonder", 0.99) is Relation.OTHER


VALUES = ["a", "b", "c", "b"]


@given(st.permutations(range(4)), st.lists(st.integers(0, 3), min_size=4, max_size=4, unique=True))
@settings(max_examples=40)
def test_versions_hold_one_after_the_other_in_whatever_order_they_are_learned(
    order: list[int], times: list[int]
) -> None:
    """Facts of which each contradicts the others are learned in some order: in the end each holds until the next."""

    def learned(order: list[int]) -> dict[int, int | None]:
        ends: dict[int, int | None] = {}
        by: dict[int, int] = {}
        for new in order:
            known = [
                Known(seq, times[seq], ends[seq], seq not in by, Relation.OTHER if seq == new else AGAINST)
                for seq in ends
            ]
            found = place(times[new], known)
            ends[new] = found.ended
            if found.ended_by is not None:
                by[new] = found.ended_by
            for seq in found.ends:
                ends[seq], by[seq] = times[new], new
        return ends

    ends = learned(order)
    for fact, at in enumerate(times):
        later = [other for other in times if other > at]
        assert ends[fact] == min(later, default=None)


def test_what_is_said_again_later_is_another_time_of_the_same() -> None:
    """Munich, Berlin, Munich: three versions; said again while it holds, it is one."""
    munich = Known(1, 10, 20, False, Relation.SAME)
    berlin = Known(2, 20, None, True, AGAINST)
    again = place(30, [munich, berlin])
    assert (again.joins, again.ends) == (None, {2: AGAINST})
    assert place(15, [munich, berlin]).joins == 1
    live = Known(1, 10, None, True, Relation.SAME)
    assert place(40, [live]).joins == 1
    assert place(5, [live]).joins == 1
    assert place(5, [Known(1, 30, None, True, Relation.SAME), Known(2, 20, 30, False, AGAINST)]).ended == 20


@pytest.mark.parametrize(
    ("at", "joins", "ends"), [(10, True, True), (19, True, True), (20, False, True), (30, False, False)]
)
def test_what_ended_by_itself_is_neither_joined_nor_ended_again(at: int, joins: bool, ends: bool) -> None:
    """A fact that contradicts it and begins at its end supersedes it."""
    same, against = (Known(1, 10, 20, True, is_) for is_ in (Relation.SAME, AGAINST))
    assert place(at, [same]).joins == (1 if joins else None)
    assert place(at, [against]).ends == ({1: AGAINST} if ends else {})


@pytest.mark.parametrize(("at", "joins"), [(-5, 1), (0, 1), (5, 1), (12, 2), (20, 2), (30, 2)])
def test_what_is_said_again_joins_the_version_of_its_time(at: int, joins: int) -> None:
    versions = [Known(1, 0, 9, True, Relation.SAME), Known(2, 20, None, True, Relation.SAME)]
    assert place(at, versions).joins == joins


@pytest.mark.parametrize(
    ("until", "joins", "ended_by"), [(None, 1, 2), (30, 1, 2), (20, None, 2), (15, None, None)]
)
def test_what_ended_before_the_next_version_stays_apart(
    until: int | None, joins: int | None, ended_by: int | None
) -> None:
    assert place(0, [Known(1, 20, None, True, Relation.SAME)], until).joins == joins
    assert place(0, [Known(2, 20, None, True, AGAINST)], until).ended_by == ended_by


def test_what_was_taken_back_by_hand_is_not_there() -> None:
    back = Known(1, 10, 10, False, AGAINST, mended=True)
    same = Known(2, 10, 10, False, Relation.SAME, mended=True)
    found = place(20, [back, same])
    assert (found.joins, found.ends, found.ended) == (None, {}, None)


@pytest.mark.parametrize(
    ("fact", "said", "is_"),
    [
        ("Mara lives in Berlin", "I moved to Berlin last year", True),
        ("Mara lives in Paris", "I moved to Berlin last year", False),
        ("Mara pays 900 euros of rent", "My rent is 900 euros", True),
        ("Mara pays 950 euros of rent", "My rent is 900 euros", False),
        ("Mara has three cats", "I have 3 cats", True),
        ("Mara has 3 cats", "I have three cats", True),
        ("Mara moves to Oslo on 2024-05-08", "I move to Oslo next Wednesday", True),
        ("The user prefers it", "Good morning", False),
        ("The user works", "I work", True),
        ("Der Nutzer mag Kaffee", "Ich trinke am liebsten Kaffee", True),
    ],
)
def test_a_fact_rests_on_what_was_said(fact: str, said: str, is_: bool) -> None:
    assert grounded(fact, [said], speakers=["Mara"]) is is_


def test_what_a_model_says_of_pairs_is_read_in_any_wrapping() -> None:
    said = [Relation.NEAR, AGAINST, Relation.REFINES]
    for answer in (
        '[{"line": 1, "is": "same"}, {"line": 2, "is": "contradicts"}, {"line": 3, "is": "refines"}]',
        "1. same\n2) contradicts\n3: refines",
        "```json\n{'1': 'same', '2': 'contradicts', '3': 'refines'}\n```",
    ):
        assert [verdicts(answer).get(n) for n in (1, 2, 3)] == said
    assert verdicts("I cannot tell.") == {}


@given(
    st.integers(0, 10**17),
    st.one_of(st.none(), st.integers(0, 10**17)),
    st.integers(0, 10**17),
    st.floats(1, 1000),
)
@settings(max_examples=40)
def test_decay_is_linear_and_never_below_zero(made: int, used: int | None, now: int, half: float) -> None:
    days = days_unused(made, used, now)
    assert days == max(0.0, (now - max(made, used or 0)) / DAY)
    assert freshness(half, half) == pytest.approx(0.5)
    assert 0.0 <= freshness(days, half) <= 1.0
    assert freshness(2 * half + 1, half) == 0.0
    assert value(0.5, 3, days, half) >= value(0.5, 2, days, half)
    assert value(0.5, 0, days, None) == 0.5


def test_all_orders_of_three() -> None:
    """The smallest case by hand: whichever comes first, Munich ends when Hamburg begins, Hamburg when Berlin does."""
    starts = {1: 10, 2: 20, 3: 30}
    for order in permutations(starts):
        held: dict[int, tuple[int | None, int | None]] = {}
        for new in order:
            found = place(
                starts[new], [Known(s, starts[s], end, by is None, AGAINST) for s, (end, by) in held.items()]
            )
            held |= dict.fromkeys(found.ends, (starts[new], new))
            held[new] = (found.ended, found.ended_by)
        assert held == {1: (20, 2), 2: (30, 3), 3: (None, None)}, order


@pytest.mark.parametrize(
    ("verdict", "new", "old", "holds"),
    [
        (Relation.NEAR, "tim has a dog", "Tim is a nurse", False),
        (Relation.REFINES, "tim has a dog", "Tim is a nurse", False),
        (Relation.NEAR, "Tim moved to Berlin", "Tim has a dog called Rex", False),
        (Relation.REFINES, "Tim has a brown dog called Rex", "Tim has a dog", True),
        (Relation.NEAR, "Tim works as a nurse", "Tim is a nurse", True),
        (Relation.NEAR, "Tim pays 900 euros of rent", "Tim pays 800 euros of rent", False),
        (Relation.NEAR, "Tim lives in Berlin", "Tim lives in Munich", False),
        (Relation.CONTRADICTS, "Mara had steak", "Mara is vegan", True),
        (Relation.OTHER, "Mara had steak", "Mara is vegan", True),
    ],
)
def test_a_verdict_needs_support_in_the_words(verdict: Relation, new: str, old: str, holds: bool) -> None:
    assert supported(verdict, new, old) is holds


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("The new budget is 2 100", "The budget is 1 800"),
        ("The updated deadline is Friday", "The deadline is Monday"),
        ("The kitchen's new budget is 900 euros", "The kitchen's budget is 700 euros"),
    ],
)
def test_the_new_value_of_a_thing_is_against_its_old_one(new: str, old: str) -> None:
    assert relation(new, old) is Relation.CONTRADICTS


def test_other_signs_for_an_apostrophe_deny_too() -> None:
    assert relation("Ana doesn\u00b4t live in Rome", "Ana lives in Rome") is AGAINST


def test_what_is_longer_than_a_sentence_claims_nothing() -> None:
    """In the time that it takes to compare the words."""
    long = "Ada likes " + "now " * 200 + "tea"
    assert relation(long, "Ada dislikes tea") is Relation.OTHER
    work = partial(relation, "Ada likes tea")
    grows_in_proportion(work, lambda n: "Ada likes " + "now " * n + "tea", 2_000)


def test_a_new_budget_of_one_thing_is_not_that_of_another() -> None:
    assert relation("The new budget is 2 100", "The kitchen budget is 1 800") is Relation.OTHER


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("Ada does not want any more cats", "Ada has cats"),
        ("Ada no longer eats red meat", "Ada eats meat"),
        ("Ada wohnt ab Mai in Bonn", "Ada wohnt in Rom"),
    ],
)
def test_what_is_denied_is_no_more_than_what_is_said(new: str, old: str) -> None:
    assert relation(new, old) is not Relation.CONTRADICTS


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Ada's phone number is 555-1234", "Ada's wife's phone number is 555-9999"),
        ("Ada's email is ada@example.com", "Ada's work email is a.l@example.org"),
        ("Ada's budget is 500 euros", "Ada's holiday budget is 900 euros"),
        ("Ada's sister is called Clara", "Ada's sister's dog is called Rex"),
        ("Ada's appointment is on 3 May at 10", "Ada's dentist appointment is on 9 May at 9"),
    ],
)
def test_what_belongs_to_a_subject_has_values_of_its_own(first: str, second: str) -> None:
    assert relation(first, second) is relation(second, first) is Relation.OTHER


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Ada lives in Munich", "Ada moved to a new desk"),
        ("Ada lives in Munich", "Ada moved to the next question"),
        ("Ada lives in Munich", "Ada lives in a small flat"),
        ("Ada's wife is Eva", "Ada's wife is a teacher"),
        ("Ada's boss is Petra", "Ada's boss is on vacation until Monday"),
        ("Ada's flight is LH 123", "Ada's flight is delayed"),
        ("Ada works at Acme", "Ada works at night"),
        ("Ada works for Acme", "Ada works for 8 hours a day"),
    ],
)
def test_what_is_said_of_a_thing_is_no_other_value_of_it(first: str, second: str) -> None:
    assert Relation.CONTRADICTS not in (relation(first, second), relation(second, first))


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("Ada lives in a big house", "Ada lives in a small flat"),
        ("Ada no longer lives in a small flat", "Ada lives in a small flat"),
        ("Ada moved to a flat in Cologne", "Ada lives in Munich"),
        ("Ada lives in the Netherlands", "Ada lives in Munich"),
        ("Ada's wife is Maria", "Ada's wife is Eva"),
    ],
)
def test_another_value_takes_the_place_of_one_of_its_kind(new: str, old: str) -> None:
    assert relation(new, old) is Relation.CONTRADICTS


AGAINST_EACH_OTHER = """\
Ada works at Home Depot | Ada works at Acme
Ada works at home depot | Ada works at acme
Ada works for Night Owl Games | Ada works for Acme
Ada works at 3M | Ada works at Acme
Ada works at Two Sigma | Ada works at Acme
Ada works for The New York Times | Ada works for Acme
Ada works at a bank | Ada works at a school
Ada now works for a small bank | Ada works at Acme
ada's boss is tom | ada's boss is eva
Ada's boss is tom maier | Ada's boss is eva
Ada's husband is alfred | Ada's husband is tom
Ada's doctor is molly | Ada's doctor is Eva
Ada's doctor is dr. house | Ada's doctor is Eva
Ada's boss is German Garcia | Ada's boss is Tom
Ada's address is Kant 5 | Ada's address is at Goethe 7
Ada's flight is lh 456 | Ada's flight is LH 123
ada lives in the netherlands | ada lives in munich
ada lives in the united states | ada lives in munich
ada lives in the uk | ada lives in france
The deadline is in two weeks | The deadline is Friday
The deadline is in three weeks | The deadline is in two weeks
The launch is in two weeks | The launch is in May
The launch is in June | The launch is in May
The launch is in the fall | The launch is in spring
The price is at 900 euros | The price is 800 euros
The budget is 500 euros | The budget is 400 euros
The meeting is at 10 | The meeting is at 9
The meeting is in Rome | The meeting is in Berlin
The standup is on Monday | The standup is on Friday
The party is on 15 May | The party is on Friday
The party is on the 15th | The party is on Friday
The party is on 2027-05-15 | The party is on Friday
Ada left Acme | Ada is a nurse at Acme
Ada stopped smoking | Ada smokes two packs a day
Ada moved to Berlin | Ada lives in Munich
Ada's wife is called Eva | Ada's wife is called Mia
Ada drinks coffee now | Ada does not drink coffee because of her heart
Ada drinks coffee | Ada does not drink coffee these days
Ada eats meat | Ada does not eat meat for religious reasons
Ada eats fish | Ada does not eat meat or fish
Ada eats eggs | Ada does not eat meat, fish or eggs
Ada drinks tea in the evening | Ada does not drink tea or coffee in the evening
Ada mag keinen Kaffee | Ada mag Kaffee
Ada mag keinen Kaffee mehr | Ada mag Kaffee
Ada wohnt nicht in Köln | Ada wohnt in Köln
Ada isst kein Fleisch oder Fisch | Ada isst Fisch
Ada's standing instruction: always answer in German | Ada's standing instruction: always answer in English
Ada's standing instruction: antworte auf Deutsch | Ada's standing instruction: antworte auf Englisch
Ada's standing instruction: nenne mich immer Tim | Ada's standing instruction: nenne mich immer Max
Ada's standing instruction: round to two decimals | Ada's standing instruction: round to three decimals
Ada's standing instruction: give amounts in grams | Ada's standing instruction: give amounts in cups
Ada's standing instruction: always use dark mode | Ada's standing instruction: always use light mode
Ada's standing instruction: answer briefly | Ada's standing instruction: answer thoroughly
Ada cancelled their Netflix subscription | Ada has a Netflix subscription
Ada canceled her Netflix subscription last week | Ada pays for a Netflix subscription
Ada stopped their Netflix subscription | Ada has a Netflix subscription
Ada cancelled Netflix | Ada subscribes to Netflix
Ada quit the gym | Ada goes to the gym
Ada gave up the piano lessons | Ada takes piano lessons
Ada left the company | Ada works at the company
Ada left the choir in May | Ada sings in a choir
Ada quit their job | Ada has a job
Ada uses Python for scripts now | Ada uses Ruby for scripts
Ada prefers early flights | Ada prefers late flights
Ada prefers mild food | Ada prefers spicy food
Ada prefers morning meetings | Ada prefers evening meetings
Ada does not smoke | Ada smokes cigars
Ada does not eat meat | Ada eats meat again
Ada isst kein Fleisch | Ada isst Fleisch gern
"""

NOT_AGAINST_EACH_OTHER = """\
Ada works at home | Ada works at Acme
Ada works at home on Fridays | Ada works at Acme
Ada works at home mostly | Ada works at Acme
Ada works at home two days a week | Ada works at Acme
Ada works at home too | Ada works at Acme
Ada works at night in the lab | Ada works at Acme
Ada works at night only | Ada works at Acme
Ada works for 8 hours a day | Ada works for Acme
Ada works for 8 straight hours | Ada works for Acme
Ada works for 3 different companies | Ada works for Acme
Ada works for free | Ada works for Acme
Ada works for half a day | Ada works for Acme
Ada works for several clients | Ada works for Acme
Ada works at 9 | Ada works at Acme
Ada works for a big company | Ada works at Acme
Ada works at the office on Mondays | Ada works at Acme
Ada works at the airport | Ada works for Lufthansa
Ada's wife is German | Ada's wife is Eva
Ada's wife is Thai | Ada's wife is Eva
Ada's wife is 34 | Ada's wife is Eva
Ada's wife is 8 months pregnant | Ada's wife is Eva
Ada's wife is allergic to nuts | Ada's wife is Eva
ada's wife is tired | ada's wife is eva
ada's boss is really nice | ada's boss is tom
ada's boss is awesome | ada's boss is tom
ada's boss is on vacation until monday | ada's boss is tom
Ada's boss is in Berlin | Ada's boss is Tom
Ada's husband is into golf | Ada's husband is Tom
Ada's husband is originally from spain | Ada's husband is Tom
Ada's doctor is fully booked | Ada's doctor is Dr. Smith
Ada's flight is at 9 | Ada's flight is LH 123
Ada's flight is tomorrow at 9 | Ada's flight is LH 123
Ada's flight is 9 hours long | Ada's flight is LH 123
Ada's flight is delayed by two hours | Ada's flight is LH 123
Ada's address is in Berlin | Ada's address is Goethe 7
Ada's address is incomplete | Ada's address is 12 Main St
Ada's job is at Acme | Ada's job is teaching
ada lives in the old town | ada lives in munich
The launch is in May | The launch is in Berlin
The launch is in May | The launch is at 10
The deadline is Friday | The deadline is at 5pm
The deadline is Friday | The deadline is at noon
Ada's birthday is on 3 May | Ada's birthday is in Rome
Ada's birthday is on 3 May | Ada's birthday is coming up
The budget is 500 euros | The budget is in the sheet
The budget is 500 euros | The budget is tight
The price is 20 euros | The price is negotiable
The standup is on Monday | The standup is at 9:30
The meeting is in room 5 | The meeting is at 10
The meeting is at 10 | The meeting is in 2 hours
The meeting is at the office | The meeting is in Berlin
Ada sold the Volvo | Ada drives a Tesla
Ada sold the Volvo | Ada has a friend with a Volvo
Ada sold the Volvo | Ada's sister drives a Volvo
Ada sold the Volvo | Ada likes the Volvo
Ada sold a boat | Ada owns a boat
Ada sold their car | Ada has a car loan
Ada sold their car | Ada drives a rental car
Ada sold their car | Ada bought a new car
Ada sold their house in Rome | Ada has a house in Spain
Ada gave away the cat | Ada has two cats
Ada got rid of the cat | Ada has a cat allergy
Ada left Rome | Ada loves Rome
Ada left Rome | Ada was born in Rome
Ada left Acme | Ada has friends at Acme
Ada left Acme | Ada worked at Acme from 2010 to 2015
Ada stopped at the store | Ada works at the store
Ada stopped smoking | Ada hates smoking
Ada quit their job | Ada started a new job at Google
Ada quit their job | Ada has a job interview
Ada left the party | Ada has a party on Friday
Ada no longer has a car | Ada has a car seat for the kids
Ada lives in Rome | Ada moved to Linux
Ada lives in Rome | Ada moved to Marketing
Ada lives in Rome | Ada moved to a new team at Acme
Ada lives at 12 Main St | Ada lives in Springfield
Ada wohnt in einer WG | Ada wohnt in Köln
Ada uses vim for code | Ada uses git for code
Ada prefers Italian food | Ada prefers spicy food
Ada's sister is called Eva | Ada's sister is called Mia
Ada visited Rome in 2019 | Ada visited Rome in 2022
Ada takes 5 mg in the morning | Ada takes 10 mg in the evening
Ada works 40 hours a week | Ada works 5 days a week
The price is 20 euros for adults | The price is 10 euros for kids
Ada's budget is 500 euros for food | Ada's budget is 900 euros for travel
Ada likes tea | Ada does not like green tea
Ada likes green tea | Ada likes tea because it is not sweet
Ada lives in Rome | Ada is not married and lives in Rome
Ada drinks tea | Ada hates coffee and drinks tea
Ada likes pizza | Ada does not like pizza with ham or cheese
Ada likes cheese | Ada hates mac and cheese
Ada likes chips | Ada does not like fish and chips
Ada eats three eggs a week | Ada does not eat more than two or three eggs a week
Ada uses Slack | Ada does not use Slack as her main tool
Ada is vegan for ethical reasons | Ada is not vegan for health reasons
Ada is in Rome in May | Ada is not in Rome right now
Ada's standing instruction: always write tests | Ada's standing instruction: always write docs
Ada prefers German food | Ada prefers Italian food
Ada prefers early flights | Ada prefers late dinners
Ada uses Python for scripts | Ada uses Ruby for scripts
Ada left the house | Ada has a house
Ada left the office | Ada works at the office
Ada stopped the car | Ada has a car
Ada cancelled the Netflix subscription | Ada has a Spotify subscription
Ada quit the gym | Ada's sister goes to the gym
Ada has an exam on Monday | Ada has an exam on Friday
Ada has no dog | Ada has a dog allergy
Ada does not like coffee | Ada likes coffee cake
Ada's standing instruction: always use tabs | Ada's standing instruction: always use semicolons
Ada's standing instruction: always answer briefly | Ada's standing instruction: always answer politely
"""


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("Ada sold the Volvo", "Ada drives a Volvo"),
        ("Ada sold their old Volvo to a friend", "Ada has an old red Volvo"),
        ("Ada got rid of the boat last year", "Ada owns a boat with a cabin"),
    ],
)
def test_what_is_sold_is_not_owned_any_more_and_may_be_bought_again(new: str, old: str) -> None:
    assert relation(new, old) is Relation.CONTRADICTS
    assert relation(old, new) is Relation.OTHER


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("Ada cancelled their Netflix subscription at noon", "Ada has a Netflix subscription"),
        ("Ada quit smoking cigars at the office", "Ada smokes cigars at the office"),
        ("Ada no longer sings at weddings in Rome", "Ada sings in Rome at weddings and parties"),
    ],
)
def test_what_is_over_is_never_taken_for_what_goes_on(new: str, old: str) -> None:
    assert {relation(new, old), relation(old, new)} <= {AGAINST, Relation.OTHER}


def _pairs(table: str) -> list[list[str]]:
    return [line.split(" | ") for line in table.splitlines()]


@pytest.mark.parametrize(("first", "second"), _pairs(AGAINST_EACH_OTHER))
def test_one_ends_the_other_in_whatever_order(first: str, second: str) -> None:
    assert relation(first, second) is relation(second, first) is Relation.CONTRADICTS


@pytest.mark.parametrize(("first", "second"), _pairs(NOT_AGAINST_EACH_OTHER))
def test_both_hold(first: str, second: str) -> None:
    assert Relation.CONTRADICTS not in (relation(first, second), relation(second, first))
