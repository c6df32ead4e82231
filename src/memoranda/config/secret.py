"""Keys of providers, which are never shown."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Protocol

from memoranda.errors import ConfigError, MemorandaError

_SENDABLE = re.compile(r"[\x21-\x7e]+")


class Keyed(Protocol):
    """Settings that name a key."""

    @property
    def api_key(self) -> str | None: ...
    @property
    def api_key_env(self) -> str | None: ...
    @property
    def api_key_file(self) -> str | None: ...


class Secret:
    """The key that the settings of this `section` name, or the variable `usual`; a file is read again for each
    request, since tokens that expire are renewed there. `now()` is None without a key.

    Raises:
        ConfigError: the variable that `api_key_env` names is not set, the file cannot be read, or the key cannot
            be sent in a header.
    """

    def __init__(
        self, settings: Keyed, usual: str | None, section: str, unavailable: type[MemorandaError]
    ) -> None:
        self._section = section
        self._unavailable = unavailable
        self._file = Path(settings.api_key_file).expanduser() if settings.api_key_file else None
        self.last: str | None = None
        try:
            self.last = self._given(settings, usual)
        except unavailable as exc:
            raise ConfigError(f"{section}.api_key_file", str(exc)) from exc
        if self.last is not None and not _SENDABLE.fullmatch(self.last):
            raise ConfigError(
                f"{section}.api_key", "has a space or a letter that no header can carry; write the key alone"
            )

    def _given(self, settings: Keyed, usual: str | None) -> str | None:
        if self._file is not None:
            return self._read(self._file)
        if name := settings.api_key_env:
            if key := os.environ.get(name, "").strip():
                return key
            raise ConfigError(f"{self._section}.api_key_env", f"the environment variable `{name}` is not set")
        return (settings.api_key or (os.environ.get(usual, "") if usual else "")).strip() or None

    def now(self) -> str | None:
        """Return the present key.

        Raises:
            MemorandaError: of the kind `unavailable`; its file cannot be read, or is empty.
        """
        if self._file is not None:
            self.last = self._read(self._file)
        return self.last

    def _read(self, path: Path) -> str:
        try:
            key = path.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as exc:
            reason = exc.strerror if isinstance(exc, OSError) else "it is not UTF-8 text"
            raise self._unavailable(f"the key file {path} cannot be read: {reason}") from exc
        if not _SENDABLE.fullmatch(key):
            raise self._unavailable(f"the key file {path} holds no key that can be sent; write the key alone")
        return key

    def __repr__(self) -> str:
        return "Secret(***)"
