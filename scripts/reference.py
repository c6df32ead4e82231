"""Write docs/reference from the code: Python, HTTP, commands, configuration, metrics, errors.

.venv/bin/python scripts/reference.py
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import typer
from prometheus_client.metrics import MetricWrapperBase

import memoranda
from memoranda import errors
from memoranda.app.blocking import features
from memoranda.app.blocking.memoranda import BlockingMemoranda
from memoranda.app.blocking.responses import BlockingResponses
from memoranda.app.blocking.workspace import BlockingFeatures
from memoranda.app.memoranda import Memoranda
from memoranda.app.workspace import Features
from memoranda.cli.app import app
from memoranda.cli.commands import CALLS, SECTIONS
from memoranda.config.agent_sections import ServerKey
from memoranda.config.sections import Config, own_types
from memoranda.config.sources import Section
from memoranda.responses.responses import Responses
from memoranda.server.errors import STATUSES, type_of
from memoranda.server.openapi import document
from memoranda.server.route import Route
from memoranda.server.routes import ROUTES
from memoranda.server.telemetry import Telemetry

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "reference"
NOTE = "<!-- Written by scripts/reference.py from the code: change it there. -->"
Schema = Mapping[str, Any]


def page(title: str, *parts: str) -> str:
    """The text of a page; long paragraphs have several lines."""
    blocks = "\n\n".join([f"# {title}", NOTE, *parts]).split("\n\n")
    return (
        "\n\n".join(
            block if block.startswith(("|", "#", "```", "- ", "<")) else wrapped(block) for block in blocks
        )
        + "\n"
    )


def wrapped(paragraph: str) -> str:
    return textwrap.fill(paragraph, 120, break_long_words=False, break_on_hyphens=False)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; an empty text if there are no rows."""
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join([f"| {' | '.join(head)} |", "|---" * len(head) + "|", *lines]) if lines else ""


def sentence(text: str) -> str:
    """A text on one line, with a full stop."""
    flat = " ".join(text.split())
    return flat if not flat or flat[-1] in ".:!?)" else f"{flat}."


# --- Python ------------------------------------------------------------------------------------------


def python_page() -> str:
    """Every public class and function, with what the blocking interface takes and returns."""
    body = ast.parse(Path(features.__file__).with_suffix(".pyi").read_text("utf-8")).body
    parts = [
        "`memoranda.open(folder)` and `memoranda.connect(url, key)` return an object with the attributes below; "
        "`await Memoranda.open(folder)` and `AsyncClient` return one whose methods are coroutines with the same "
        "parameters. Every error is a subclass of `MemorandaError`: [errors](errors.md).",
        "## memoranda",
        *(function(f"memoranda.{name}", getattr(memoranda, name)) for name in ("open", "connect")),
        "## Methods of the object itself",
        *methods_of(BlockingFeatures, Features),
        *methods_of(BlockingMemoranda, Memoranda),
    ]
    for accessor, kind in accessors(body):
        feature = getattr(kind, "feature", Responses)
        parts.append(f"## {accessor}\n\n{inspect.getdoc(feature) or ''}")
        parts += methods_of(kind, feature, f"{accessor}.")
    parts += ["## Values", *values(body)]
    return page("Python", *parts)


def accessors(body: Iterable[ast.stmt]) -> Iterator[tuple[str, type]]:
    """The attributes that hold features, with their classes: `knowledge.stores` and `BlockingStores`."""
    parts = {node.name: node.body for node in body if isinstance(node, ast.ClassDef)}

    def below(prefix: str, name: str) -> Iterator[tuple[str, type]]:
        yield prefix, getattr(features, name, BlockingResponses)
        for node in parts.get(name, ()):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                yield from below(f"{prefix}.{node.target.id}", ast.unparse(node.annotation))

    for name, feature in vars(BlockingFeatures).items():
        if isinstance(feature, cached_property):
            yield from below(name, feature.func.__annotations__["return"])


def methods_of(kind: type, feature: type, prefix: str = "") -> Iterator[str]:
    """The public methods of a blocking class, as those of the feature that it calls are declared."""
    for name, value in vars(kind).items():
        if inspect.isfunction(value) and not name.startswith("_"):
            yield function(f"{prefix}{name}", getattr(feature, name, value))


def function(name: str, value: Any) -> str:
    """A function with its signature and docstring."""
    signature = plain(str(inspect.signature(value)).replace("(self, ", "(").replace("(self)", "()"))
    code = f"```python\n{name.rpartition('.')[2]}{signature}\n```"
    return f"### {name}\n\n{code}\n\n{documented(inspect.getdoc(value) or '')}"


def plain(signature: str) -> str:
    """A signature without the modules of its types, as a caller without an event loop has it."""
    signature = re.sub(r"Async(Iterator|Generator)", "Iterator", signature)
    signature = re.sub(r"(: |-> )'([^']*)'", r"\1\2", signature)
    return re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Z])", "", signature)


def documented(text: str) -> str:
    """A docstring as Markdown: what it raises is a list."""
    says, _, raises = text.partition("\nRaises:\n")
    if not raises:
        return says.strip()
    return f"{says.strip()}\n\nRaises:\n\n" + re.sub(r"^ {4}(\w+): ", r"- `\1`: ", raises, flags=re.MULTILINE)


def values(body: Iterable[ast.stmt]) -> Iterator[str]:
    """The structs that the methods take and return, by name."""
    places = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    shown = {name: getattr(import_module(module), real) for name, (module, real) in places.items()}
    shown |= {name: getattr(memoranda, name) for name in memoranda.__all__}
    del shown["Config"]  # its keys have a page of their own
    for name, value in sorted(shown.items()):
        if isinstance(value, type) and issubclass(value, msgspec.Struct):
            rows = [
                [f"`{f.name}`", f"`{annotation(value, f.name)}`", default(f)]
                for f in msgspec.structs.fields(value)
            ]
            says = sentence(inspect.cleandoc(value.__doc__ or ""))
            yield f"### {name}\n\n{says}\n\n{table(['field', 'type', 'default'], rows)}"


def annotation(kind: type, name: str) -> str:
    """The annotation of a field as it is written, without bounds."""
    for each in kind.__mro__:
        if name in vars(each).get("__annotations__", {}):
            return re.sub(r"Annotated\[([^,]+),.*\]", r"\1", str(each.__annotations__[name]))
    return ""


def default(field: Any) -> str:
    """The default of a field as Python; empty if it is required."""
    if field.default is not msgspec.NODEFAULT:
        return f"`{field.default!r}`"
    return "" if field.default_factory is msgspec.NODEFAULT else f"`{field.default_factory()!r}`"


# --- HTTP --------------------------------------------------------------------------------------------


def http_page() -> str:
    """Every route by its subject, with what it takes and answers."""
    whole = document(ROUTES, None, None)
    schemas = whole["components"]["schemas"]
    subjects: dict[str, list[str]] = {subject(route): [] for route in ROUTES}
    nested: dict[str, None] = {}
    selection = schemas["SelectionBody"]["properties"]
    for route in sorted(ROUTES, key=lambda route: (route.path, METHODS.index(route.method))):
        operation = whole["paths"][route.path][route.method.lower()]
        needs = {"open": "No key is needed.", "operator": "Needs an operator's key."}.get(
            route.needs, f"Needs a key with the right `{route.needs}`."
        )
        long = " It has no total time limit." if route.long else ""
        lines = [f"### {route.method} {route.path}", f"{sentence(operation['summary'])} {needs}{long}"]
        if "description" in operation:
            lines.append(sentence(operation["description"]))
        queries = [one for one in operation.get("parameters", []) if one["in"] == "query"]
        rows = rows_of({one["name"]: one["schema"] for one in queries}, (), nested, selection)
        lines.append(table(["query", "type", "default"], rows))
        for media, content in operation.get("requestBody", {}).get("content", {}).items():
            lines.append(body_of(media, content.get("schema", {}), schemas, nested, selection))
        lines.append(answer_of(operation["responses"], schemas))
        subjects[subject(route)].extend(line for line in lines if line)
    done: set[str] = set()
    objects: list[str] = []
    while left := [name for name in nested if name not in done]:
        for name in left:
            done.add(name)
            rows = rows_of(schemas[name]["properties"], schemas[name].get("required", ()), nested, {})
            objects.append(f"### {name}\n\n{says(schemas[name])}\n\n{table(FIELDS, rows)}")
    head = [
        "Bodies are JSON unless a form is named. A field without a default is required. `/openapi.json` of a server "
        "has the same with every constraint; what holds for many routes, such as keys, paging and selections, is in "
        "[the guide](../guides/http.md).",
    ]
    parts = [part for name, lines in subjects.items() for part in (f"## {name}", *lines)]
    chosen = [
        "## Selection",
        says(schemas["SelectionBody"]),
        table(FIELDS, rows_of(selection, (), nested, {})),
    ]
    return page("HTTP", *head, *chosen, *parts, "## Objects in bodies", *objects)


FIELDS = ("field", "type", "default")
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


SYSTEMS = {
    "mem0": "Routes of mem0's clients",
    "dify": "Routes of Dify",
    "anthropic": "Routes of Anthropic's clients",
}


def subject(route: Route) -> str:
    """What a route is about: the system whose API it belongs to, or the first name of its path."""
    words = [word for word in route.path.split("/") if word not in ("", "api", "v1")]
    return SYSTEMS.get(route.api.name) or (words[0] if route.path.count("/") > 1 else "server")


def says(schema: Schema) -> str:
    return sentence(schema.get("description", ""))


def rows_of(
    fields: Mapping[str, Schema],
    required: Sequence[str],
    nested: dict[str, None],
    selection: Mapping[str, Schema],
) -> list[list[str]]:
    """A row for each field, with its type and default; one for all those of a selection."""
    selects = selection and selection.keys() <= fields.keys()
    left = {name: one for name, one in fields.items() if not (selects and name in selection)}
    rows = [
        [f"`{name}`", shape(one, nested), "" if name in required else fallback(one)]
        for name, one in left.items()
    ]
    return [*rows, ["a [selection](#selection)", "", ""]] if selects else rows


def body_of(
    media: str,
    schema: Schema,
    schemas: Mapping[str, Schema],
    nested: dict[str, None],
    selection: Mapping[str, Schema],
) -> str:
    """What a request sends."""
    name = schema.get("$ref", "").rpartition("/")[2]
    if not name:
        return f"Body: {media}."
    rows = rows_of(schemas[name]["properties"], schemas[name].get("required", ()), nested, selection)
    form = " (form)" if media.startswith("multipart") else ""
    return f"Body{form}: {says(schemas[name])}\n\n{table(FIELDS, rows)}".strip()


def answer_of(answers: Mapping[str, Any], schemas: Mapping[str, Schema]) -> str:
    """What a route answers."""
    for status, response in answers.items():
        for media, content in response.get("content", {}).items():
            if status == "default":
                continue
            name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
            if name and "properties" in schemas[name]:
                names = ", ".join(f"`{field}`" for field in schemas[name]["properties"])
                return f"Answer: {says(schemas[name])} Fields: {names}."
            return f"Answer: {media}."
    return ""


def shape(schema: Schema, nested: dict[str, None]) -> str:
    """A schema in words: `integer 1..100`, `list of string`."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        nested.setdefault(name)
        return f"[{name}](#{name.lower().replace('.', '')})"
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " or ".join(dict.fromkeys(shape(one, nested) for one in schema[key]))
    kind = schema.get("type", "any")
    if kind == "array":
        size = bounds(schema, "minItems", "maxItems").strip()
        return f"list{f' ({size})' if size else ''} of {shape(schema.get('items', {}), nested)}"
    if isinstance(kind, list):
        return " or ".join(kind)
    return f"{kind}{bounds(schema, 'minimum', 'maximum')}{bounds(schema, 'minLength', 'maxLength', ' characters')}"


def bounds(schema: Schema, low: str, high: str, unit: str = "") -> str:
    """Bounds as ` 1..100`, ` from 1` or ` to 100`; empty without any."""
    least, most = schema.get(low), schema.get(high)
    if "exclusiveMinimum" in schema and low == "minimum":
        return f" above {schema['exclusiveMinimum']}"
    if least is None and most is None:
        return ""
    if most is None:
        return ", not empty" if (least, unit) == (1, " characters") else f" from {least}{unit}"
    return f" to {most}{unit}" if least is None else f" {least}..{most}{unit}"


def fallback(schema: Schema) -> str:
    """The default of a field."""
    return f"`{msgspec.json.encode(schema['default']).decode()}`" if "default" in schema else ""


# --- commands ----------------------------------------------------------------------------------------

SHARED = {"--data", "--config", "--set", "--json", "--help"}


def commands_page() -> str:
    """Every command with its arguments and options."""
    group: Any = typer.main.get_command(app)
    context = typer.Context(group)
    parts = [
        "`memoranda COMMAND --help` says the same. The options at the end of this page belong to every command."
    ]
    shared: dict[str, list[str]] = {}
    for title, names in SECTIONS.items():
        parts.append(f"## {title}")
        for name in names:
            command = group.get_command(context, name)
            below = getattr(command, "commands", {})
            parts.append(command_of(f"memoranda {name}", command, shared))
            parts += [command_of(f"memoranda {name} {each}", one, shared) for each, one in below.items()]
    return page("Commands", *parts, "## Options of every command", table(["option", ""], shared.values()))


def command_of(name: str, command: Any, shared: dict[str, list[str]]) -> str:
    """One command, beside the options that all have, which go into `shared`."""
    arguments, options = [], []
    for each in command.params:
        if each.param_type_name == "argument":
            arguments.append([f"`{each.name.strip('_').upper()}`", sentence(each.help or "")])
            continue
        row = [option(each), sentence(each.help or "")]
        if each.opts[0] not in SHARED or shared.setdefault(each.opts[0], row) != row:
            options.append(row)
    usage = " ".join([name, *(row[0].strip("`") for row in arguments)])
    calls = "\n".join(f"memoranda {call}" for call in CALLS.get(name.removeprefix("memoranda "), ()))
    shown = f"For example:\n\n```sh\n{calls}\n```" if calls else ""
    lines = [f"### {name}", f"```sh\n{usage}\n```", command.help and inspect.cleandoc(command.help), shown]
    return "\n\n".join(line for line in [*lines, table(["", ""], [*arguments, *options])] if line)


def option(each: Any) -> str:
    """The flags of an option and its value: `--limit N`."""
    value = "" if each.is_flag else f" {each.metavar}"
    return ", ".join(f"`{flag}{value}`" for flag in each.opts)


# --- configuration -----------------------------------------------------------------------------------

GUIDES = {
    "database": "backends", "index": "backends", "words": "backends", "files": "backends", "embedder": "embedders",
    "model": "models", "mcp": "mcp", "console": "console", "spending": "costs", "prices": "costs",
    "upload_ask": "upload-ask", "keys[]": "http",
}  # fmt: skip
"""The page of `docs/guides` about a section."""
KEY = ("key", "value", "default", "what it is")


def configuration_page() -> str:
    """Every key by its section, with its values and default."""
    own: list[list[str]] = []
    parts: list[str] = []
    described = documents(Config)
    for field in msgspec.structs.fields(Config):
        if isinstance(field.default, Section):
            parts += section_of(field.name, type(field.default))
        elif field.name in ("data", "keys", "agents"):
            value = f"`{msgspec.json.encode(field.default).decode()}`"
            own.append([f"`{field.name}`", valued(own_types()[field.name]), value, described[field.name]])
    head = (
        "Where keys are set, and which setting goes before which, is in [the guide](../guides/configuration.md). The "
        "variable of a key is `MEMORANDA_` and the key in capitals, with `__` for each dot."
    )
    return page("Configuration", head, table(KEY, own), *parts, *section_of("keys[]", ServerKey))


def section_of(name: str, kind: type[Section]) -> list[str]:
    """The heading, the page and the keys of a section."""
    described = documents(kind)
    rows = []
    for field in msgspec.structs.fields(kind):
        value = "" if field.required else default(field)
        rows.append(
            [f"`{name}.{field.name}`", valued(field.type), as_yaml(field, value), described[field.name]]
        )
    guide = f" See [the guide](../guides/{GUIDES[name]}.md)." if name in GUIDES else ""
    return [f"## {name}", f"{sentence(kind.__doc__ or '')}{guide}", table(KEY, rows)]


def as_yaml(field: Any, shown: str) -> str:
    """A default as it is written in the configuration."""
    if not shown:
        return "required"
    value = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
    return f"`{msgspec.json.encode(value).decode()}`"


def valued(kind: Any) -> str:
    """The values of a type in words."""
    schema = msgspec.json.schema(kind)
    return schema.get("description", "") if "description" in schema else shape(schema, {})


def documents(kind: type) -> dict[str, str]:
    """The docstrings below the fields of a class.

    Raises:
        KeyError: when a field is read that has none.
    """
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0].body  # type: ignore[attr-defined]
    return {
        field.target.id: sentence(says.value.value)
        for field, says in pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(says, ast.Expr)
    }


# --- metrics and errors ------------------------------------------------------------------------------


def metrics_page() -> str:
    """Every metric of a server."""
    with memoranda.open(":memory:") as opened:
        telemetry = Telemetry(opened.inner.core)
        collected = list(telemetry.registry.collect())
    named = [one for one in vars(telemetry).values() if isinstance(one, MetricWrapperBase)]
    own = {one.describe()[0].name: one._labelnames for one in named}
    rows = []
    for metric in sorted(collected, key=lambda metric: metric.name):
        name = metric.name + ("_total" if metric.type == "counter" else "")
        labels = {label for sample in metric.samples for label in sample.labels} - {"le"}
        labels |= {*own.get(metric.name, ())}
        rows.append(
            [
                f"`{name}`",
                metric.type,
                ", ".join(f"`{label}`" for label in sorted(labels)),
                metric.documentation,
            ]
        )
    head = "`GET /metrics` answers in the text format of Prometheus. Values are those of one process."
    return page("Metrics", head, table(["metric", "type", "labels", "what it counts"], rows))


def errors_page() -> str:
    """Every error of the library, with the status and code of its answer over HTTP."""
    rows = []
    for name, kind in vars(errors).items():
        if not (isinstance(kind, type) and issubclass(kind, errors.MemorandaError)):
            continue
        status, code = next(
            (STATUSES[each] for each in kind.__mro__ if each in STATUSES), (500, "internal_error")
        )
        rows.append(
            [f"`{name}`", str(status), f"`{type_of(status)}`", f"`{code}`", sentence(kind.__doc__ or "")]
        )
    head = (
        "Errors of the library are in `memoranda.errors`; each is a `MemorandaError`. Over HTTP the body is "
        '`{"error": {"message", "type", "param", "code"}}`.'
    )
    return page("Errors", head, table(["error", "status", "`type`", "`code`", "what it means"], rows))


PAGES = {
    "python": python_page,
    "http": http_page,
    "commands": commands_page,
    "configuration": configuration_page,
    "metrics": metrics_page,
    "errors": errors_page,
}


def pages() -> dict[Path, str]:
    """The text of each page."""
    return {FOLDER / f"{name}.md": make() for name, make in PAGES.items()}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, "utf-8")
