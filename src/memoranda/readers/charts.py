"""The series of charts in office files, from the values that are stored beside the drawing."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from memoranda.readers.xml import Element, attribute, local, whole_number

_LITERAL = re.compile(r"\"[^\"]*\"|\[[^\]]*\]|\\.")
_DATE = re.compile(r"[yd]|mmm", re.IGNORECASE)
_EPOCH, _EPOCH_OF_1904 = datetime(1899, 12, 30), datetime(1904, 1, 1)


def series_line(series: Element) -> str:
    """Return a series as a line: its name, then `category: value` for each point, separated by ` | `."""
    name = " ".join(part.text or "" for part in series.iterfind("{*}tx//{*}v"))
    labels, values = _points(series, "cat", "xVal"), _points(series, "val", "yVal")
    points = (": ".join(filter(None, (labels.get(at), values.get(at)))) for at in sorted(labels | values))
    return " | ".join(filter(None, (" ".join(part.split()) for part in (name, *points))))


def _points(series: Element, *names: str) -> dict[int, str]:
    """Return the texts in the first of these elements, by the number of their point."""
    element = next((found for name in names if (found := series.find(f"{{*}}{name}")) is not None), None)
    if element is None:
        return {}
    levels = [_level(level) for level in element.iter("{*}lvl")]
    return _joined(levels) if levels else _level(element)


def _joined(levels: list[dict[int, str]]) -> dict[int, str]:
    """Return categories of several levels, of which the first is the innermost; a group is named at its first point."""
    inner, *outer = levels
    groups = [""] * len(outer)
    joined: dict[int, str] = {}
    for at in sorted(inner):
        groups = [level.get(at, group) for level, group in zip(outer, groups, strict=True)]
        joined[at] = " ".join(filter(None, (*reversed(groups), inner[at])))
    return joined


def _level(element: Element) -> dict[int, str]:
    code = element.find(".//{*}formatCode")
    usual = "" if code is None else code.text or ""
    points = {}
    for point in element.iter("{*}pt"):
        text = "".join(part.text or "" for part in point.iterfind("{*}v"))
        if local(point.getparent()).startswith("num"):
            text = _number(text, attribute(point, "formatCode") or usual, element)
        points[whole_number(attribute(point, "idx"), 0)] = text
    return points


def _number(text: str, code: str, element: Element) -> str:
    """Return a number without the digits that its binary form adds, as a percentage or date if that is its format."""
    try:
        number = float(text)
        code = _LITERAL.sub("", code)
        if "%" in code:
            return f"{number * 100:.12g}%"
        if code != "General" and _DATE.search(code):
            moment = _epoch(element) + timedelta(days=number)
            return moment.isoformat(" ", "minutes").removesuffix(" 00:00")
    except (ValueError, OverflowError):
        return text
    return f"{number:.15g}"


def _epoch(element: Element) -> datetime:
    flag = element.getroottree().getroot().find("{*}date1904")
    return _EPOCH_OF_1904 if flag is not None and attribute(flag, "val") in ("1", "true") else _EPOCH
