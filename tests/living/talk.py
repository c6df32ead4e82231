"""What was written down in `atelier` and `harbor`, read."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, NamedTuple

LINE = re.compile(r"(\d{4}-\d\d-\d\d) ([\d:]+) (\w+) ([^\[:]+?)(?: \[(\w+)\])?: (.+)")
CHANGE = re.compile(r"(edit|delete) (\w+)(?:: (.+))?")
BOT = "bot"


class Said(NamedTuple):
    """One message. `id` is given to those that have a label; the others go without."""

    channel: str
    at: datetime
    speaker: str
    label: str | None
    text: str

    @property
    def body(self) -> dict[str, Any]:
        """The message as it is sent."""
        bot = self.speaker == BOT
        sent = {
            "role": "assistant" if bot else "user",
            "speaker": self.speaker,
            "content": self.text,
            "occurred_at": self.at.isoformat(),
            "user_id": None if bot else user_of(self.speaker),
        }
        return sent if self.label is None else {**sent, "id": self.label}


class Changed(NamedTuple):
    """A message that its speaker edits; without a text, takes back."""

    label: str
    text: str | None


def events(talk: str) -> list[Said | Changed]:
    """The lines in the order in which they arrive."""
    return [read(line) for line in talk.splitlines() if line]


def read(line: str) -> Said | Changed:
    if found := CHANGE.fullmatch(line):
        return Changed(found[2], found[3])
    found = LINE.fullmatch(line)
    assert found is not None, line
    day, clock, channel, speaker, label, text = found.groups()
    return Said(channel, moment(f"{day} {clock}"), speaker, label, text)


def moment(text: str) -> datetime:
    """`2026-03-02 09:02`, in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def user_of(speaker: str) -> str:
    """The id of whoever speaks."""
    return speaker.split()[0].lower()


def final(talk: str) -> list[Said]:
    """What the log must hold at the end, channel by channel, in order of time and, at one time, of arrival."""
    held: list[Said] = []
    for event in events(talk):
        if isinstance(event, Said):
            held.append(event)
            continue
        at = next(n for n, said in enumerate(held) if said.label == event.label)
        if event.text is None:
            del held[at]
        else:
            held[at] = held[at]._replace(text=event.text)
    return sorted(held, key=lambda said: (said.channel, said.at))


def holds(words: tuple[str, ...], text: str) -> bool:
    """Whether all the words are in the text; `a|b` is either."""
    lower = text.lower()
    return all(any(one.lower() in lower for one in each.split("|")) for each in words)
