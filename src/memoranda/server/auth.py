"""Authentication: the subject of a bearer key, or of the key that a browser signed in with; without keys, the local
machine as admin of tenant `default`."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import lru_cache
from hashlib import sha256
from ipaddress import IPv6Address, ip_address
from urllib.parse import urlsplit

from msgspec.structs import replace
from starlette.requests import HTTPConnection

from memoranda.clock import zone_named
from memoranda.config.agent_sections import OPERATOR_TENANT, ServerKey
from memoranda.config.sections import Config
from memoranda.errors import ConfigError, Forbidden, InvalidInput, MissingKey, Unauthorized
from memoranda.server.console_session import COOKIE, csrf_token, key_of
from memoranda.server.errors import Refused
from memoranda.server.load import WrongKeys
from memoranda.server.route import OWN, Api
from memoranda.store.access import sees_all
from memoranda.store.operations import Need
from memoranda.types import Subject, Through

ACT_FOR = "x-memoranda-user"
IMPORT = "x-memoranda-import"
TIME_ZONE = "x-memoranda-time-zone"
CSRF = "x-memoranda-csrf"
SAFE = ("GET", "HEAD", "OPTIONS")
FORWARDED = (
    "forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-server", "x-real-ip",
    "x-client-ip", "x-cluster-client-ip", "true-client-ip", "cf-connecting-ip", "fly-client-ip",
)  # fmt: skip
"""Headers by which proxies say for whom they ask."""
MAX_NAME_CHARS = 256


class Guard:
    """Turns a request into a subject, or refuses it."""

    def __init__(self, config: Config) -> None:
        """Raises:
        ConfigError: there are no keys, and the server listens beyond this machine, or requires some.
        """
        if not config.keys and config.server.require_keys:
            raise ConfigError(
                "keys", "is empty while server.require_keys is on; add a key, or switch that off"
            )
        if not config.keys and not is_loopback(config.server.host):
            raise ConfigError(
                "keys",
                f"is empty while server.host is {config.server.host}: anyone who reaches it would be admin; "
                "add a key, or listen on 127.0.0.1",
            )
        self._keys = [(_digest(key.key), key) for key in config.keys]
        self._wrong_keys = WrongKeys()
        self._console = config.console.enabled
        self._time_zone = config.sessions.time_zone

    def subject(self, request: HTTPConnection, needs: Need, api: Api = OWN) -> Subject:
        """The subject of a request, whose key is where the clients of `api` send it.

        Raises:
            Unauthorized: no key, an unknown one, or a session of the console that has ended.
            Forbidden: the key's role is too small for what the route needs, or may not act for others.
            Refused: a browser of another site, or another machine, speaks to a server without keys; or a request with
                the console's cookie comes from another site or lacks its token.
        """
        subject = self.known(request, needs, api)
        self.check(subject, needs)
        return subject

    def known(self, request: HTTPConnection, needs: Need, api: Api = OWN) -> Subject:
        """The subject of a request, before its role is checked; raises `subject`'s errors but for the role."""
        return Subject(role="reader") if needs == "open" else self._known(request, api)

    def check(self, subject: Subject, needs: Need) -> None:
        """
        Raises:
            Forbidden: the role of the subject is too small for what the route needs.
        """
        if needs in ("admin", "operator") and subject.role != "admin":
            raise Forbidden("this needs a key with the admin role")
        if needs == "operator" and not is_operator(subject):
            raise Forbidden(
                f"this concerns every tenant and needs an admin key of tenant {OPERATOR_TENANT!r}"
            )
        if needs == "service" and not sees_all(subject):
            raise Forbidden("this needs an admin key, or a service key that is bound to no user")
        if needs == "write" and subject.role == "reader":
            raise Forbidden("a reader writes nothing; use a key with the member role or above")

    @asynccontextmanager
    async def slowed(self, request: HTTPConnection) -> AsyncIterator[None]:
        """Delay the error if the key of a request turns out to be wrong."""
        try:
            yield
        except MissingKey:
            raise
        except Unauthorized:
            address = request.client.host if request.client else ""
            await asyncio.sleep(self._wrong_keys.delay(address, time.monotonic()))
            raise

    def _known(self, request: HTTPConnection, api: Api) -> Subject:
        if not self._keys:
            _check_local(request)
            subject = Subject(time_zone=self._time_zone)
        else:
            key = self._by_header(request, api) or self._by_session(request) or self._key(request, api)
            zone = key.time_zone or self._time_zone
            subject = Subject(
                tenant_id=key.tenant, user_id=key.user, role=key.role, key=key.name, time_zone=zone
            )
        if TIME_ZONE in request.headers:
            subject = replace(subject, time_zone=_zone(request.headers[TIME_ZONE]))
        asked = request.headers.get(ACT_FOR)
        acting = subject if asked is None else _acting(subject, asked)
        name = request.headers.get(IMPORT)
        if name is None:
            return acting
        by = f"import:{name_in(name, 'X-Memoranda-Import')}"
        return replace(acting, through=Through(origin="import", by=(by,)))

    def _by_header(self, request: HTTPConnection, api: Api) -> ServerKey | None:
        """Return the key of the header that clients of the API send instead of Authorization; None without it."""
        secret = request.headers.get(api.key_header, "") if api.key_header else ""
        return self.key(secret.strip()) if secret.strip() else None

    def _key(self, request: HTTPConnection, api: Api) -> ServerKey:
        scheme, _, secret = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() not in {known.lower() for known in api.schemes} or not secret.strip():
            forms = [f"`Authorization: {known} KEY`" for known in api.schemes]
            if api.key_header:
                forms.append(f"`{api.key_header}: KEY`")
            raise MissingKey(f"send a key: {' or '.join(forms)}")
        return self.key(secret.strip())

    def key(self, secret: str) -> ServerKey:
        """Return the key with this secret.

        Raises:
            Unauthorized: there is none.
        """
        offered = _digest(secret)
        matches = [key for digest, key in self._keys if hmac.compare_digest(digest, offered)]
        if not matches:
            raise Unauthorized("this key is not known here")
        return matches[0]

    @property
    def has_keys(self) -> bool:
        """True if callers must have a key."""
        return bool(self._keys)

    def signed_in(self, request: HTTPConnection) -> ServerKey | None:
        """Return the key that the browser signed in with; None without a session, or after its end."""
        session = request.cookies.get(COOKIE)
        return None if session is None else key_of(session, [key for _, key in self._keys], time.time())

    def _by_session(self, request: HTTPConnection) -> ServerKey | None:
        """Return the key of the console's cookie; None if the request has none, or names a key itself.

        A WebSocket cannot carry the token, so the cookie opens none.
        """
        has_key = "authorization" in request.headers or COOKIE not in request.cookies
        if has_key or not self._console or request.scope["type"] != "http":
            return None
        key = self.signed_in(request)
        if key is None:
            raise Unauthorized("this session of the console has ended; sign in again")
        _check_site(request)
        if request.scope["method"] not in SAFE:
            expected = csrf_token(key.key, request.cookies[COOKIE])
            if not hmac.compare_digest(request.headers.get(CSRF, "").encode(), expected.encode()):
                raise Refused(
                    403, "csrf_token_missing", "with the console's cookie, send its token in X-Memoranda-CSRF"
                )
        return key


def is_operator(subject: Subject) -> bool:
    """Return True for an admin of the default tenant, who may see sizes and counts of the whole folder."""
    return subject.role == "admin" and subject.tenant_id == OPERATOR_TENANT


def _digest(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "surrogateescape")).digest()


def _acting(subject: Subject, header: str) -> Subject:
    """A service for the user it names. A service that is bound to one user stays with that one."""
    user = name_in(header, "X-Memoranda-User")
    if subject.role != "service" or subject.user_id not in (None, user):
        raise Forbidden("X-Memoranda-User: only a service key that is bound to no other user acts for a user")
    return replace(subject, user_id=user, role="service")


def _zone(name: str) -> str:
    """Return the name of a time zone, as a header has it.

    Raises:
        InvalidInput: there is none of this name.
    """
    try:
        zone_named(name)
    except ValueError as exc:
        raise InvalidInput("X-Memoranda-Time-Zone", str(exc)) from exc
    return name


def name_in(header: str, name: str) -> str:
    """Return the user or session that the value of a header names.

    Raises:
        InvalidInput: it is not UTF-8, empty, or longer than 256 characters.
    """
    try:
        named = header.encode("latin-1").decode("utf-8")
    except UnicodeDecodeError as exc:
        raise InvalidInput(name, "must be UTF-8") from exc
    if not named or len(named) > MAX_NAME_CHARS:
        raise InvalidInput(name, f"must hold 1 to {MAX_NAME_CHARS} characters")
    return named


def _check_local(request: HTTPConnection) -> None:
    """Without keys the machine itself is the key, so nothing may speak through it: no other machine, no proxy,
    and no web page (a page of another site sends its Origin; a rebound DNS name shows in Host). HTTP/1.0 is spoken by
    proxies that say nothing of whom they ask for, as nginx is configured by default."""
    headers = request.headers
    forwarded = any(h in headers for h in FORWARDED) or request.scope.get("http_version") == "1.0"
    if request.client is None or not is_loopback(request.client.host) or forwarded:
        raise Unauthorized("this server has no keys and answers its own machine only; configure `keys`")
    host = headers.get("host", "")
    if not is_loopback(_name(f"//{host}")):
        raise Refused(403, "host_not_allowed", "without keys, call this server as localhost or 127.0.0.1")
    origin = headers.get("origin")
    foreign = origin is not None and (not origin.startswith("http") or urlsplit(origin).netloc != host)
    if foreign or not _own_page(request):
        raise Refused(403, "origin_not_allowed", "without keys, pages of other sites are refused; use a key")


def _check_site(request: HTTPConnection) -> None:
    if not _own_page(request):
        raise Refused(
            403, "origin_not_allowed", "the console's cookie is for pages of this server; use a key"
        )


def _own_page(request: HTTPConnection) -> bool:
    """Return True unless the browser says that a page of another site sends the request."""
    return request.headers.get("sec-fetch-site", "none") in ("same-origin", "none")


def _name(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


@lru_cache(maxsize=1_024)
def is_loopback(host: str) -> bool:
    """Return True if a host name or address is this machine's own."""
    if host == "localhost":
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback
