"""Items of conversations and responses as text."""

from __future__ import annotations

from memoranda.cli.output import beginning, plain
from memoranda.responses.values import Item, output_text, text_of
from memoranda.text.stored import compact_json


def item_line(item: Item) -> str:
    """Return a line about an item: its id, who said it or its type, and its text. For a call the text is its
    arguments, for the output of a call its beginning."""
    if item["type"] == "message":
        return plain(f"{item['id']}  {item['role']}: {text_of(item)}")
    try:
        called = str(item.get("arguments") or item.get("input") or ", ".join(item.get("queries") or ()))
        parts = [item.get("name") or "", beginning(called or output_text(item))]
        return plain("  ".join([item.get("id") or "-", item["type"], *filter(None, parts)]))
    except (TypeError, KeyError):  # items of types that the server only keeps are of any form
        return plain(f"{item.get('id') or '-'}  {item['type']}  {beginning(compact_json(item))}")
