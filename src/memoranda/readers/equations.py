"""Equations as linear text, of Office Math and MathML: 1/2, x^2, √(x+1), ∑_(i=1)^n i.

As in linear formats (Unicode Technical Note 28), an operand of more than one name or number stands in parentheses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from memoranda.readers.xml import Element, attribute, local

_SIMPLE = re.compile(r"[+\-−]?(?:\w+(?:[.,]\w+)*|[^\w\s])|\([^()]*\)")
"""An operand that needs no parentheses: a name, a number, one sign, or what has some."""
_OPERATOR = "∫"
_DEEPEST = 100
"""Levels of an equation; deeper ones are read as their text."""


def linear(element: Element, depth: int = 0) -> str:
    """Return an element of an equation as linear text."""
    if not isinstance(element.tag, str):  # a comment
        return ""
    name = local(element)
    if name in ("t", "mi", "mn", "mo", "mtext", "ms", "ci", "cn") or depth > _DEEPEST:
        return " ".join("".join(element.itertext()).split()) if name != "t" else element.text or ""
    if name in _LEFT_OUT:
        return ""
    parts = [(local(child), child) for child in element if isinstance(child.tag, str)]
    if name in _OFFICE:
        named = {kind: linear(child, depth + 1) for kind, child in parts}
        return _OFFICE[name](element, named)
    if name in ("d", "m", "eqArr"):
        return _listed(name, element, parts, depth)
    texts = [linear(child, depth + 1) for kind, child in parts if kind not in _LEFT_OUT]
    if name in _MATHML and len(texts) >= _MATHML[name][0]:
        return _MATHML[name][1](texts)
    if name == "mtr":
        return ", ".join(texts)
    return "; ".join(texts) if name == "mtable" else "".join(texts)


def operand(text: str) -> str:
    """Return a text as an operand: in parentheses, unless it is simple."""
    return text if not text or _SIMPLE.fullmatch(text) else f"({text})"


def _under(base: str, below: str, above: str) -> str:
    """Return a text with a subscript and a superscript, where there are any."""
    return f"{base}{f'_{operand(below)}' if below else ''}{f'^{operand(above)}' if above else ''}"


def _fraction(texts: Sequence[str]) -> str:
    return f"{operand(texts[0])}/{operand(texts[1])}"


def _root(text: str, degree: str = "") -> str:
    return f"{degree and f'{operand(degree)}'}√{operand(text)}"


def _value(element: Element, path: str, otherwise: str) -> str:
    found = element.find(path)
    return otherwise if found is None else attribute(found, "val")


def _sum(element: Element, parts: dict[str, str]) -> str:
    sign = _value(element, "{*}naryPr/{*}chr", _OPERATOR)
    return f"{_under(sign, parts.get('sub', ''), parts.get('sup', ''))} {parts.get('e', '')}"


def _listed(name: str, element: Element, parts: Sequence[tuple[str, Element]], depth: int) -> str:
    """Return what stands between delimiters, a matrix, or lines of equations."""
    rows = [linear(child, depth + 1) for kind, child in parts if kind in ("e", "mr")]
    if name == "d":
        begin = _value(element, "{*}dPr/{*}begChr", "(")
        return f"{begin}{', '.join(rows)}{_value(element, '{*}dPr/{*}endChr', ')')}"
    if name == "m":
        cells = [[linear(cell, depth + 1) for cell in row] for kind, row in parts if kind == "mr"]
        return f"[{'; '.join(', '.join(row) for row in cells)}]"
    return "; ".join(rows)


_LEFT_OUT = frozenset(
    {"annotation", "annotation-xml", "rPr", "ctrlPr", "fPr", "sSupPr", "sSubPr", "sSubSupPr", "radPr", "naryPr", "dPr",
     "funcPr", "limLowPr", "limUppPr", "accPr", "barPr", "mPr", "eqArrPr", "groupChrPr", "boxPr", "sPrePr", "phantPr"}
)  # fmt: skip
"""Elements that say how something looks, or say it a second time."""
_OFFICE: dict[str, Callable[[Element, dict[str, str]], str]] = {
    "f": lambda _, parts: _fraction([parts.get("num", ""), parts.get("den", "")]),
    "sSup": lambda _, parts: _under(operand(parts.get("e", "")), "", parts.get("sup", "")),
    "sSub": lambda _, parts: _under(operand(parts.get("e", "")), parts.get("sub", ""), ""),
    "sSubSup": lambda _, parts: _under(
        operand(parts.get("e", "")), parts.get("sub", ""), parts.get("sup", "")
    ),
    "rad": lambda _, parts: _root(parts.get("e", ""), parts.get("deg", "")),
    "nary": _sum,
    "func": lambda _, parts: f"{parts.get('fName', '')} {operand(parts.get('e', ''))}",
    "limLow": lambda _, parts: _under(parts.get("e", ""), parts.get("lim", ""), ""),
    "limUpp": lambda _, parts: _under(parts.get("e", ""), "", parts.get("lim", "")),
}
_MATHML: dict[str, tuple[int, Callable[[Sequence[str]], str]]] = {
    "mfrac": (2, _fraction),
    "msup": (2, lambda texts: _under(operand(texts[0]), "", texts[1])),
    "msub": (2, lambda texts: _under(operand(texts[0]), texts[1], "")),
    "msubsup": (3, lambda texts: _under(operand(texts[0]), texts[1], texts[2])),
    "munder": (2, lambda texts: _under(texts[0], texts[1], "")),
    "mover": (2, lambda texts: _under(texts[0], "", texts[1])),
    "munderover": (3, lambda texts: _under(texts[0], texts[1], texts[2])),
    "msqrt": (1, lambda texts: _root("".join(texts))),
    "mroot": (2, lambda texts: _root(texts[0], texts[1])),
    "mfenced": (1, lambda texts: f"({', '.join(texts)})"),
}
"""By the name of an element: how many children it needs, and its text of theirs."""
