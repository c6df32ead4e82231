"""Tags of HTML: where they begin and end, what their attributes say, and elements that are read as one piece."""

from __future__ import annotations

import re
from functools import cached_property
from html import unescape

from memoranda.readers.equations import linear
from memoranda.readers.xml import fragment, whole_number

LONGEST_EQUATION = 100_000

TOKEN = re.compile(
    r"<(?:(?P<comment>!--)|(?P<cdata>!\[CDATA\[)|(?P<odd>[!?]|/[^A-Za-z])"
    r"|(?P<close>/?)(?P<name>[A-Za-z][^\s/>]*+)"
    r"(?:[^>=]++|=\s*+(?:\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z))?+)*+(?:>|\Z))"
)
_ENDLESS = re.compile(r"&#[0-9]{1000,};?")
_ATTRIBUTE = re.compile(
    r"(?P<name>[^\s\"'<>/=]++)(?:\s*+=\s*+(?:\"(?P<double>[^\"]*+)\"?|'(?P<single>[^']*+)'?|(?P<bare>[^\s>]++)))?+"
)
_WORD_END = re.compile(r"[\s\"'>]")
_NOTHING = re.compile(r"(?:0++(?:\.0*+)?|\.0++)(?:[a-z%]+)?")
"""A size or an opacity of zero, in any unit."""
_NAMED = re.compile(r"&(?!(?:amp|lt|gt|quot|apos);|#)\w+;")


class Tag:
    """A start tag. Its attributes are parsed once, when the first of them that the tag has is read."""

    def __init__(self, token: re.Match[str]) -> None:
        self._text = token.string[token.end("name") : token.end()]
        self._lower = self._text.lower()

    def get(self, name: str) -> str | None:
        """Return the value of an attribute, empty for one without a value; None if the tag does not have it."""
        return self._attributes.get(name) if name in self._lower else None

    def word(self, name: str) -> str:
        """Return the first word of an attribute; empty without one."""
        return _WORD_END.split((self.get(name) or "").strip(), maxsplit=1)[0]

    def number(self, name: str, otherwise: int = 1) -> int:
        """Return the number that an attribute is."""
        return whole_number(self.word(name), otherwise)

    @property
    def is_hidden(self) -> bool:
        """True if the element is not shown, or struck out. Style sheets are not read."""
        if "hidden" not in self._lower and "style" not in self._lower:
            return False
        hidden, style = self.get("hidden"), self._style()
        return (
            (hidden is not None and hidden.lower() != "until-found")
            or style.get("display") == "none"
            or style.get("visibility") in ("hidden", "collapse")
            or _NOTHING.fullmatch(style.get("opacity", "")) is not None
            or "line-through"
            in (style.get("text-decoration", "") + style.get("text-decoration-line", "")).split()
        )

    @property
    def has_no_size(self) -> bool:
        """True if the letters of the element have no size, but for those of elements in it that have their own."""
        return "font-size" in self._lower and bool(_NOTHING.fullmatch(self._style().get("font-size", "")))

    @cached_property
    def _attributes(self) -> dict[str, str]:
        """Attributes by their names in lower case; of equal names the first counts."""
        attributes: dict[str, str] = {}
        for match in _ATTRIBUTE.finditer(self._text):
            value = match["double"] or match["single"] or match["bare"] or ""
            attributes.setdefault(match["name"].lower(), plain_words(value))
        return attributes

    def _style(self) -> dict[str, str]:
        """Return the declarations of the `style` attribute, in lower case."""
        declarations = (part.partition(":") for part in (self.get("style") or "").lower().split(";"))
        return {name.strip(): value.partition("!")[0].strip() for name, _, value in declarations}


def plain_words(text: str) -> str:
    """Return a text with its character references resolved. One with too many digits is no character."""
    return unescape(_ENDLESS.sub("\ufffd", text)) if "&" in text else text


def box(tag: Tag) -> str:
    """Return the box or button of a form: `[x]` or `[ ]`; empty for other inputs, and for those that are hidden."""
    if (tag.get("type") or "").lower() not in ("checkbox", "radio") or tag.is_hidden:
        return ""
    return " [ ] " if tag.get("checked") is None else " [x] "


def chosen(markup: str, *, multiple: bool) -> str:
    """Return the options of a list that are chosen: of one without a choice the first, as it is shown."""
    choice: list[str] = []
    first = ""
    for token in TOKEN.finditer(markup):
        if token["name"] and token["name"].lower() == "option" and not token["close"]:
            end = markup.find("<", token.end())
            words = " ".join(plain_words(markup[token.end() : end if end >= 0 else len(markup)]).split())
            first = first or words
            if Tag(token).get("selected") is not None:
                choice.append(words)
    return ", ".join(filter(None, choice)) or ("" if multiple else first)


def equation(markup: str) -> str:
    """Return the content of a `math` element as linear text; empty if it cannot be read."""
    if len(markup) > LONGEST_EQUATION:
        return ""
    inner = _NAMED.sub(lambda match: unescape(match[0]), markup.rpartition("</")[0])
    root = fragment(f"<math>{inner}</math>")
    return "" if root is None else linear(root)
