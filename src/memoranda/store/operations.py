"""Operations: methods of features, declared once for every interface that offers them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple, Protocol, Self, get_type_hints, runtime_checkable
from urllib.parse import quote

import msgspec

from memoranda.errors import InvalidInput

Need = Literal["open", "read", "write", "service", "admin", "operator"]
Verb = Literal["GET", "POST", "PATCH", "PUT", "DELETE"]
PARAMETER = re.compile(r"{(\w+)}")
"""A parameter in a path."""


@runtime_checkable
class Input(Protocol):
    """An input with other fields than the parameters of the method."""

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the method."""


class Shown(Protocol):
    """An answer of another shape than the result of the method. `given` are the arguments."""

    @classmethod
    def of(cls, result: Any, given: Mapping[str, Any]) -> Any:
        """Return the answer for a result."""

    def result(self, given: Mapping[str, Any]) -> Any:
        """Return the result in an answer."""


class Deleted(msgspec.Struct, kw_only=True):
    """The id of what is gone."""

    id: str
    deleted: bool = True

    @classmethod
    def of(cls, result: None, given: Mapping[str, Any]) -> Self:
        """Return the id of the call."""
        return cls(id=given["id"])

    def result(self, given: Mapping[str, Any]) -> None:
        """Return None."""


class EmptyBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Nothing to say."""


class Sent(NamedTuple):
    """A call as a request: `body` is a struct or a mapping, `query` a mapping of plain values; None without any.
    `given` are the arguments by name."""

    path: str
    body: Any
    query: dict[str, Any] | None
    given: dict[str, Any]


class Operation(msgspec.Struct, frozen=True):
    """A method of a feature as it is offered over HTTP and by what is made from that.

    The summary is the first line of the method's docstring, the answer its result, or `shows`, if that has another
    shape. Parameters of the path are those of the method that have these names; one that the method does not have is
    its `id`. All others, without `local` ones, are in a JSON body, or with GET and DELETE in the query string, as a
    struct made of the signature, whose annotations have the bounds. It extends `reads`, which has the fields that are
    no parameters, such as the keywords of a selection. `needs` is the least a key must be allowed: `open` asks for no
    key, `service` for an admin key, or a service key that is bound to no user, `operator` for an admin of the default
    tenant. `long` is work that grows with its input, and has no time limit; `compresses` an answer that is compressed
    when it is large. `beside` is the query string beside a body; a field of both is named in one of them.
    `command` is the name of the command in the group of the feature, if the operation has one. `whole` is the parameter
    that a body is as a whole; `of` are parameters of the path that make the feature, as the id of a store does.
    """

    method: Callable[..., Awaitable[Any]]
    verb: Verb
    path: str
    needs: Need
    reads: type[msgspec.Struct] | None = None
    shows: type[Shown] | None = None
    beside: type[msgspec.Struct] | None = None
    local: tuple[str, ...] = ()
    long: bool = False
    compresses: bool = False
    command: str = ""
    whole: str = ""
    of: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the method."""
        return self.method.__name__

    @property
    def summary(self) -> str:
        """The first sentence of the method's docstring, without the full stop."""
        first, _, _ = inspect.cleandoc(self.method.__doc__ or "").partition("\n\n")
        return " ".join(re.split(r"[.:](?:\s|$)", first)[0].split())

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the path's parameters, as the method has them."""
        return tuple(self._own(name) for name in PARAMETER.findall(self.path) if name not in self.of)

    def _own(self, name: str) -> str:
        return name if name in _signature(self.method).parameters else "id"

    def in_path(self, values: Mapping[str, str]) -> dict[str, str]:
        """Return the arguments in the parameters of a path."""
        return {self._own(name): value for name, value in values.items() if name not in self.of}

    @property
    def answer(self) -> Any:
        """The type of the answer."""
        return self.shows or _hints(self.method)["return"]

    @property
    def in_query(self) -> bool:
        """True if the input is the query string."""
        return self.verb in ("GET", "DELETE")

    @property
    def input(self) -> type[msgspec.Struct] | None:
        """The type of the body or query string; None if there is none."""
        return _input(self)

    def fits(self, args: Sequence[Any], named: Mapping[str, Any]) -> bool:
        """Return True if a call of the method gives the parameters of the path. Errors as `sent`."""
        bound = _signature(self.method).bind(None, *args, **named).arguments
        return all(bound.get(name) is not None for name in self.parameters)

    def merged(self, read: msgspec.Struct | None, beside: msgspec.Struct | None) -> dict[str, Any]:
        """Return the arguments in an input, and in the query string beside it.

        Raises:
            InvalidInput: they give two values of one.
        """
        merged = {self.whole: read} if self.whole else arguments(read)
        for name, value in arguments(beside).items():
            if merged.setdefault(name, value) != value:
                says = f"is {merged[name]!r} in the body and {value!r} in the query; name one"
                raise InvalidInput(name, says)
        return merged

    def sent(self, args: Sequence[Any], named: Mapping[str, Any], of: Sequence[str] = ()) -> Sent:
        """Return the request for a call of the method; `of` are the values of the parameters that make the feature.

        Raises:
            TypeError: the arguments are not those of the method.
            InvalidInput: a whole body and a field of it are given.
        """
        signature = _signature(self.method)
        bound = signature.bind(None, *args, **named).arguments
        keywords = {name for name, one in signature.parameters.items() if one.kind is one.VAR_KEYWORD}
        given: dict[str, Any] = {}
        for name, value in list(bound.items())[1:]:
            given |= value if name in keywords else {name: value}
        values = {name: value for name, value in given.items() if value is not msgspec.UNSET}
        made = dict(zip(self.of, of, strict=True))
        path = PARAMETER.sub(
            lambda match: segment(str(made.get(match[1]) or values.pop(self._own(match[1])))), self.path
        )
        body = values.pop(self.whole) if self.whole else None
        query = self.input if self.in_query else self.beside
        if self.whole or self.in_query:
            return Sent(
                path, body, None if query is None else encoded(query, self._sent(query, values)), given
            )
        return Sent(path, None if self.input is None else self._sent(self.input, values), None, given)

    def _sent(self, read: type[msgspec.Struct], values: dict[str, Any]) -> Any:
        """Return the value that is a whole body, or else the values, which the type of the input may complete."""
        completed: Callable[[dict[str, Any]], Any] | None = getattr(read, "completed", None)
        if completed is not None:
            return completed(values)
        for name, value in values.items():
            if isinstance(value, msgspec.Struct) and issubclass(read, type(value)):
                if others := [other for other in values if other != name]:
                    raise InvalidInput(
                        others[0], f"goes inside the {type(value).__name__} that is given, not beside it"
                    )
                return value
        return values


def encoded(read: type[msgspec.Struct], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields of a query string by the names that they have there."""
    names = {field.name: field.encode_name for field in _fields(read)}
    return {names.get(name, name): value for name, value in values.items()}


def arguments(read: msgspec.Struct | None) -> dict[str, Any]:
    """Return the arguments in an input: the fields that have another value than their default."""
    if read is None:
        return {}
    return read.arguments() if isinstance(read, Input) else given(read)


def given(read: msgspec.Struct) -> dict[str, Any]:
    """Return the fields of a struct that have another value than their default."""
    values = [(field, getattr(read, field.name)) for field in _fields(type(read))]
    return {field.name: value for field, value in values if not _is_default(field, value)}


_fields = cache(msgspec.structs.fields)


def _is_default(field: msgspec.structs.FieldInfo, value: Any) -> bool:
    if field.default_factory is not msgspec.NODEFAULT:
        return bool(value == field.default_factory())
    return value is field.default or bool(value == field.default)


def completed_texts(items: Iterable[Any]) -> list[Any]:
    """Return the items of a batch, with an object for each that is a text alone."""
    return [{"content": item} if isinstance(item, str) else item for item in items]


def segment(id: str) -> str:
    """Return an id as one segment of a path. `.` and `..` are encoded as well: an HTTP client resolves them as parts of
    the path, and `..` would name what the id belongs to."""
    return id.replace(".", "%2E") if id in (".", "..") else quote(id, safe="")


@cache
def _hints(method: Callable[..., Any]) -> dict[str, Any]:
    return get_type_hints(method, include_extras=True)


@cache
def _signature(method: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(method)


@cache
def _input(operation: Operation) -> type[msgspec.Struct] | None:
    hints, reads = _hints(operation.method), operation.reads
    if operation.whole:
        whole: type[msgspec.Struct] = hints[operation.whole]
        return whole
    known = {
        *operation.parameters,
        *operation.local,
        operation.whole,
        *(() if reads is None else reads.__struct_fields__),
    }
    fields = []
    for parameter in list(_signature(operation.method).parameters.values())[1:]:
        if parameter.kind is parameter.VAR_KEYWORD:
            if reads is None:
                raise TypeError(f"{operation.method.__qualname__}: `reads` must have its keywords")
        elif parameter.name not in known:
            default = () if parameter.default is parameter.empty else (parameter.default,)
            fields.append((parameter.name, hints[parameter.name], *default))
    if not fields:
        return reads
    feature, _, name = operation.method.__qualname__.partition(".")
    title = feature + "".join(part.title() for part in name.split("_"))
    return msgspec.defstruct(
        f"{title}{'Query' if operation.in_query else 'Body'}",
        fields,
        bases=None if reads is None else (reads,),
        module=operation.method.__module__,
        namespace={"__doc__": f"{operation.summary}."},
        kw_only=True,
        forbid_unknown_fields=True,
    )
