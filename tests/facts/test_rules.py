"""What users say of themselves is found by patterns, and told in the third person."""

from __future__ import annotations

import unicodedata
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.facts.instructions import instructions
from memoranda.facts.merging import relation
from memoranda.facts.rules import captured, understandable
from support.growth import grows_in_proportion


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("I prefer tea over coffee.", ["preference: Mara prefers tea over coffee"]),
        ("Honestly, I can't stand cilantro", ["preference: Mara dislikes cilantro"]),
        ("I'd rather use tabs", ["preference: Mara prefers tabs"]),
        ("I don't eat meat.", ["preference: Mara does not eat meat"]),
        ("I like tea, don't you?", ["preference: Mara likes tea"]),
        ("I'm vegan, what can I eat in Rome?", ["fact: Mara is vegan"]),
        ("whats good in rome? i'm vegan btw", ["fact: Mara is vegan"]),
        ("I can't eat gluten", ["preference: Mara cannot eat gluten"]),
        ("I don't speak German", ["preference: Mara does not speak German"]),
        ("I don't have a car", ["preference: Mara does not have a car"]),
        ("My work hours are 9 am to 5 pm", ["entity: Mara's work hours are 9 am to 5 pm"]),
        ("My favourite colour is green", ["preference: Mara's favourite colour is green"]),
        ("I live in Munich, but I hate the rain!", ["fact: Mara lives in Munich"]),
        ("Hi, I've just moved to Berlin with my wife.", ["fact: Mara moved to Berlin with their wife"]),
        ("I'm allergic to bees and I work at Acme.", ["fact: Mara is allergic to bees", "fact: Mara works at Acme"]),
        ("I study physics at TU.", ["fact: Mara studies physics at TU"]),
        ("I no longer work at Acme", ["fact: Mara no longer works at Acme"]),
        ("I'm not vegan anymore.", ["fact: Mara is no longer vegan"]),
        ("I am no longer allergic to nuts.", ["fact: Mara is no longer allergic to nuts"]),
        ("I don't like olives any more!", ["fact: Mara no longer likes olives"]),
        ("I do not work at Acme any longer", ["fact: Mara no longer works at Acme"]),
        ("Actually, I don't have a car anymore.", ["fact: Mara no longer has a car"]),
        ("I don't live in Rome anymore, I moved to Bonn.",
         ["fact: Mara no longer lives in Rome", "fact: Mara moved to Bonn"]),
        ("I quit my job at Acme and now I work at Globex.",
         ["fact: Mara quit their job at Acme", "fact: Mara works at Globex"]),
        ("I used to live in Munich, now I live in Berlin.", ["fact: Mara lives in Berlin"]),
        ("I used to live in Munich but now I live in Berlin.", ["fact: Mara lives in Berlin"]),
        ("I used to live in Munich; I live in Berlin now.", ["fact: Mara lives in Berlin now"]),
        ("I sold the Volvo and drive a Tesla.", ["fact: Mara sold the Volvo", "fact: Mara drives a Tesla"]),
        ("I live in Rome, work at Acme and also have a dog.",
         ["fact: Mara lives in Rome", "fact: Mara works at Acme", "fact: Mara has a dog"]),
        ("I love animals and want to help.", ["preference: Mara loves animals"]),
        ("I like to cook and play the guitar.", ["preference: Mara likes to cook and play the guitar"]),
        ("I have a son who plays chess and loves the sea", ["fact: Mara has a son who plays chess and loves the sea"]),
        ("I'm a bit of a foodie haha", ["fact: Mara is a bit of a foodie"]),
        ("I live in nyc lol", ["fact: Mara lives in nyc"]),
        ("Call me Max.", ["fact: Mara's name is Max"]),
        ("Call me Al.", ["fact: Mara's name is Al"]),
        ("call me max", ["fact: Mara's name is max"]),
        ("Call me AJ from now on", ["fact: Mara's name is AJ"]),
        ("Write to me at: Kantstrasse 5. I live in Rome.", ["fact: Mara lives in Rome"]),
        ("The doctor said: I need to rest. I live in Rome.", ["fact: Mara lives in Rome"]),
        ("Please call me Max", ["fact: Mara's name is Max"]),
        ("I live in the US", ["fact: Mara lives in the US"]),
        ("i live in the us", ["fact: Mara lives in the us"]),
        ("I work at US Bank", ["fact: Mara works at US Bank"]),
        ("My flight is at 9 am on Friday", ["entity: Mara's flight is at 9 am on Friday"]),
        ("I love World War I movies", ["preference: Mara loves World War I movies"]),
        ("I live in Rome\nI work at Acme", ["fact: Mara lives in Rome", "fact: Mara works at Acme"]),
        ("- I live in Rome\n- I'm vegan", ["fact: Mara lives in Rome", "fact: Mara is vegan"]),
        ("1. I live in Rome\n2. I'm vegan", ["fact: Mara lives in Rome", "fact: Mara is vegan"]),
        ("im vegan", ["fact: Mara is vegan"]),
        ("i dont like olives", ["preference: Mara does not like olives"]),
        ("I like tea, my wife likes coffee.", ["preference: Mara likes tea"]),
        ("I work at Acme and Tim works at Globex.", ["fact: Mara works at Acme"]),
        ("Ich mag Kaffee und meine Frau mag Tee", ["preference: Mara mag Kaffee"]),
        ("i'm allergic to nuts so please no pesto", ["fact: Mara is allergic to nuts"]),
        ("also i live with my wife", ["fact: Mara lives with their wife"]),
        ("Correct my profile: I live in Berlin now", ["fact: Mara lives in Berlin now"]),
        ("Write a note: I'm allergic to nuts", ["fact: Mara is allergic to nuts"]),
        ("Summarize: I live in Rome.\n\nBy the way, I have two dogs.", ["fact: Mara has two dogs"]),
        ("Facts about me:\n## Home\nI live in Rome.", ["fact: Mara lives in Rome"]),
        ("For example, I live in Rome.", ["fact: Mara lives in Rome"]),
        ("Like you said, I live in Rome.", ["fact: Mara lives in Rome"]),
        ("As I said, I live in Rome.", ["fact: Mara lives in Rome"]),
        ("Write this down: I live in Rome.", ["fact: Mara lives in Rome"]),
        ("Correct: I live in Rome.", ["fact: Mara lives in Rome"]),
        ("I own a boat. Just kidding! I live in Rome.", ["fact: Mara lives in Rome"]),
        ("I switched from Vim to Emacs", ["fact: Mara switched from Vim to Emacs"]),
        ("My dog's name is Rex", ["entity: Mara's dog is called Rex"]),
        ("My budget is now 500 euros", ["entity: Mara's budget is 500 euros"]),
        ("We've decided to use Postgres for the project.",
         ["decision: It was decided to use Postgres for the project"]),
        ("We'll go with Kafka because I like it", ["decision: It was decided to go with Kafka"]),
        ("I decided to leave", ["decision: Mara decided to leave"]),
        ("Ich wohne in Köln. Ich arbeite bei Siemens.", 
         ["fact: Mara wohnt in Köln", "fact: Mara arbeitet bei Siemens"]),
        ("Hallo, ich heiße Jonas und wohne in Köln.", ["fact: Mara heißt Jonas", "fact: Mara wohnt in Köln"]),
        ("Ich wohne in Köln, arbeite bei Siemens und mag Kaffee.",
         ["fact: Mara wohnt in Köln", "fact: Mara arbeitet bei Siemens", "preference: Mara mag Kaffee"]),
        ("Ich wohne in Köln und habe keine Zeit.", ["fact: Mara wohnt in Köln"]),
        ("Ich mag Kaffee und Tee", ["preference: Mara mag Kaffee und Tee"]),
        ("Ich mag meinen Hund und unsere Katze.", ["preference: Mara mag seinen/ihren Hund und ihre Katze"]),
        ("Wir haben uns für Kafka entschieden.", ["decision: Es wurde für Kafka entschieden"]),
        ("The IT budget is 500 euros", ["entity: The IT budget is 500 euros"]),
        ("IT is on the 3rd of May", ["entity: IT is on the 3rd of May"]),
        ("My other dog is called Rex", ["entity: Mara's other dog is called Rex"]),
        ("All-hands is on Friday", ["entity: All-hands is on Friday"]),
        ("The hotel that was booked is on 5 May", ["entity: The hotel that was booked is on 5 May"]),
        ("I quit smoking in 2019.", ["fact: Mara quit smoking in 2019"]),
        ("Ich mag Kaffee", ["preference: Mara mag Kaffee"]),
    ],
)  # fmt: skip
def test_what_is_found(said: str, told: list[str]) -> None:
    found = captured(said, "Mara")
    assert [f"{one.tags[0]}: {one.text}" for one in found] == told
    assert all(one.confidence in (0.8, 0.87, 0.9) for one in found)


@pytest.mark.parametrize(
    "said",
    [
        "Do I like tea?", "What do I like", "> I like tea",
        'He said "I live in Paris with my cat".',
        "If I lived in Rome I would be happy", "Maybe I like tea", "I used to live in Rome", 
        "I don't know what to think anymore", "If I used to like tea, I like coffee", "```\nI like tea\n```",
        "I saw Mara sing and play the guitar.", "Ich freue mich auf deine Antwort, liebe Grüße, Jo",
        "Call me tomorrow.", "Call me crazy, but it works.", "Call me Monday", "Call me ASAP",
        "I can't stand up for long", "I have eaten too much", "I have the following error: 42", "I'll drop by later",
        "We are going with my parents", "Wir haben uns entschieden", "I don't have a clue", "Am I vegan?",
        "call me stupid", "call me whenever", "my name is spelled with two d's", "The truth is I hate my job",
        "My friend sent me this: I live in Rome", "my mom thinks, I live in Rome",
        "call me later", "Call me back.", "call me old-fashioned", "call me when you can", "Call me a taxi.",
        "Summarize: I live in Rome.", "Repeat after me: I love tea.", "Write me a poem about: I live in Rome.",
        "Here is a page:\n\n# About\n\nI live in Rome.",
        "My name is on the list.",
        "I'd rather not say.", "My brother said, I hate broccoli.", "He told me: I live in Rome.",
        "Mein Bruder sagt: Ich wohne in Bonn.", "Er meinte, ich wohne in Bonn.",
        "Translate: I live in Rome.", "Translate this into German:\nI have two dogs. I live in Rome.",
        "Please write a story: I live in Rome and I have three cats.", "Übersetze das: Ich wohne in Bonn.",
        "Let's say I live in Rome and I own a boat.", "In this story, I live in Rome.",
        "I am a doctor in the game.", "Angenommen, ich wohne in Bonn.", "Stell dir vor, ich wohne in Bonn.",
        "Just kidding, I live in Rome.", "I live in Rome, just kidding.", "I live in Rome. Just kidding!",
        "I'm a doctor. Not really.", "Ich wohne in Bonn. War nur ein Scherz.", "Ich wohne in Bonn, nur ein Scherz!",
        "I have a question", "I'm tired", "I am a bit confused", "I like my soup right now", "I think you are right",
        "I quit in 2019.", "I stopped last year", "I don't like the last sentence.",
        "Wir haben noch nichts entschieden.",
        "The party has to move: it is on 27 September now, same time.", "The party, which is on 5 May, is cancelled.",
        "He is on 5 mg of insulin.", "Everything is on 5 May", "Everyone of us is on 5 May", "One of them is on 5 May",
        "The first one is on Friday.", "Our one is at 5", "My favourite one is green", "The start of it is on 5 May",
        "Alles is on 5 May",
        "Thanks!", "",
    ],
)  # fmt: skip
def test_what_is_no_fact(said: str) -> None:
    assert captured(said, "Mara") == []


@pytest.mark.parametrize(
    "said", ["Ich wohne in München.", "I prefer crème brûlée over cake.", "I live in Zürich."]
)
def test_accents_may_be_characters_of_their_own(said: str) -> None:
    found = captured(said, "Zoë")
    assert found
    assert captured(unicodedata.normalize("NFD", said), "Zoë") == found


@pytest.mark.parametrize("letter", ["u\u017f", "\u0131", "I\u0307", "\u212a"])
def test_letters_that_equal_others_without_case_are_no_pronouns(letter: str) -> None:
    letter = unicodedata.normalize("NFC", letter)
    for one in captured(f"I like the {letter} of my town.", "Mara"):
        assert one.text == f"Mara likes the {letter} of their town"


LONG: dict[str, tuple[str, str, str]] = {
    "lines": ("Here:", "\n", "x"),
    "blanks": ("Here:", "\n ", "x"),
    "quotes": ("", "\u201e", "x"),
    "spaces": ("I live in", " ", "Rome"),
    "commas": ("I like ", "a, ", "or b"),
    "ands": ("I like ", "a and ", "b"),
    "hyphens": ("I do not like ", "a-b, ", "or c"),
    "items": ("", "- I like\n", "tea"),
    "colons": ("Write a: ", "b: ", "c"),
    "denials": ("I do ", "not ", "like tea"),
}
"""By name: the beginning of a long message, what it repeats, and its end."""


@pytest.mark.parametrize("name", LONG)
def test_the_time_for_a_message_grows_as_its_length(name: str) -> None:
    first, again, last = LONG[name]
    number = count()

    def work(text: str) -> None:
        captured(text, "Mara")
        instructions(text, "Mara")
        relation(
            f"{text} {next(number)}", f"{next(number)} {text}"
        )  # another text each time: results are cached

    grows_in_proportion(work, lambda size: first + again * (size // len(again)) + last, 1_000)


def test_a_turn_has_so_many_at_most_and_each_once() -> None:
    many = " ".join(f"I like {word}." for word in ("tea", "tea", "rain", "snow", "wind"))
    assert [one.text for one in captured(many)] == [
        f"The user likes {word}" for word in ("tea", "rain", "snow")
    ]
    assert len(captured(many, most=1)) == 1


@settings(max_examples=30)
@given(st.text(max_size=400))
def test_any_text_is_read(said: str) -> None:
    for one in captured(f"I like {said}", "Mara"):
        assert one.text.startswith(("Mara", "It was", "Es wurde"))


@pytest.mark.parametrize(
    ("rest", "understood"),
    [
        ("the ocean", True),
        ("hiking", True),
        ("games that test my strategizing", True),
        ("a huge fan of Lord of the Rings", True),
        ("this summer in Rome", True),
        ("her sister's garden", True),
        ("it", False),
        ("this app", False),
        ("her", False),
        ("a huge fan", False),
        ("for about four months now", False),
        ("a few days ago", False),
        ("the first option", False),
        ("the ideas", False),
        ("the first version of Emacs", True),
        ("the idea of a petting zoo", True),
        ("something to show you", False),
        ("future generations to go through that", False),
        ("so many stories to tell", False),
    ],
)
def test_a_fact_is_understood_without_the_conversation(rest: str, understood: bool) -> None:
    assert understandable(rest) is understood


@pytest.mark.parametrize(
    ("said", "facts"),
    [
        ("Dave has one, take a look", []),
        ("I love it!", []),
        ("I've been playing for a month now.", []),
        ("I've been feeling tired.", []),
        ("I'm learning German now - tough!", ["Mara is learning German now"]),
        ("I love discovering new cities - check out this pic.", ["Mara loves discovering new cities"]),
    ],
)
def test_what_is_not_understood_alone_is_left_out(said: str, facts: list[str]) -> None:
    assert [one.text for one in captured(said, "Mara")] == facts


@pytest.mark.parametrize(
    ("said", "fact"),
    [
        ("I like tea now and then.", "Ada likes tea now and then"),
        ("I like tea since then.", "Ada likes tea since then"),
        ("I live in Rome then.", "Ada lives in Rome"),
        ("I\u00b4m allergic to nuts.", "Ada is allergic to nuts"),
        ("I don\u00b4t eat meat.", "Ada does not eat meat"),
        ("I\u2018ve moved to Rome", "Ada moved to Rome"),
        ("I no longer y the apples.", "Ada no longer ys the apples"),
    ],
)
def test_odd_signs_and_words_are_read(said: str, fact: str) -> None:
    assert [found.text for found in captured(said, "Ada")] == [fact]
