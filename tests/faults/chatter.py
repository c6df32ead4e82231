"""A process that says things in channels, until it is killed or has said all.

`python chatter.py talk SETTINGS ACKS SEED`: three threads talk in channels for ever, some of it in one that they share;
a session lasts a few messages, one in three holds a fact. Each message is a JSON line in ACKS when it begins, and one
when it is acknowledged. `python chatter.py half SETTINGS PLAN`: observes the messages of a JSON file one by one, and
stays until its standard input ends, so that its jobs go on.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import memoranda

BEGAN = datetime(2026, 1, 5, 8, tzinfo=UTC)
LAST = 5
"""Messages of a session of one writer."""


def said(seed: int, writer: int, number: int) -> dict[str, Any]:
    """The message of this number: a session every few, two minutes between two of one, a day between two sessions."""
    id_ = f"{seed}x{writer}x{number}"
    word = word_of(id_)
    texts = (f"I love {word}.", f"The train of {word} is late.", f"See you, {word}!")
    at = BEGAN + timedelta(days=number // LAST, minutes=2 * (number % LAST), seconds=20 * writer)
    return {
        "id": id_,
        "content": texts[number % 3],
        "speaker": f"w{writer}",
        "occurred_at": at,
        "user_id": None,
    }


def word_of(id_: str) -> str:
    """Words like no other: facts that differ in a number alone are versions of one, and near ones are one."""
    letters = random.Random(id_).choices("bcdfghjklmnpqrstvwxz", k=24)
    return " ".join("".join(letters[at : at + 8]) for at in (0, 8, 16))


def talk_for_ever(opened: Any, acks: int, seed: int, writer: int) -> None:
    """Says one message after the other, every second one in the shared channel."""
    rng, number = random.Random(f"{seed}-{writer}"), 0
    while True:
        count = rng.choice([1, 1, 2, LAST])
        channel = f"{seed}-{writer}" if number // LAST % 2 else f"{seed}-shared"
        batch = [said(seed, writer, number + n) for n in range(min(count, LAST - number % LAST))]
        line = {"ids": [one["id"] for one in batch], "channel": channel}
        os.write(acks, json.dumps({"kind": "begin", **line}).encode() + b"\n")
        opened.observe(batch, channel_id=channel)
        os.write(acks, json.dumps({"kind": "done", **line}).encode() + b"\n")
        number += len(batch)


def talk(settings: dict[str, Any], path: str, seed: int) -> None:
    acks = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    opened = memoranda.open(**settings)
    os.write(acks, b'{"kind": "open"}\n')
    threads = [
        threading.Thread(target=talk_for_ever, args=[opened, acks, seed, writer], daemon=True)
        for writer in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def half(settings: dict[str, Any], plan: str) -> None:
    opened = memoranda.open(**settings)
    print("ready", flush=True)
    sys.stdin.readline()
    for message in json.loads(Path(plan).read_text()):
        channel = message.pop("channel")
        opened.observe([message], channel_id=channel)
    print("said", flush=True)
    sys.stdin.readline()
    opened.close()


def main() -> None:
    what, settings, *rest = sys.argv[1:]
    if what == "talk":
        talk(json.loads(settings), rest[0], int(rest[1]))
    else:
        half(json.loads(settings), rest[0])


if __name__ == "__main__":
    main()
