"""The options in the URL of a Lance index."""

from __future__ import annotations

import re
from hashlib import blake2b
from urllib.parse import parse_qsl

import msgspec

from memoranda.errors import ConfigError

MISSING = "`lancedb:` needs a package: pip install 'memoranda[lancedb]'"
KINDS = ("hnsw_sq", "none")
BUCKETS = ("s3://", "gs://", "az://")
NUMBERS = ("train_rows", "ef", "nprobes", "refine", "optimize_every", "batch")
_STORAGE = re.compile(
    r"(aws|google|gcs|azure|s3)_[a-z0-9_]+|region|endpoint|allow_http|account_name|account_key|access_key_id"
    r"|secret_access_key|session_token|virtual_hosted_style_request|timeout|connect_timeout|client_max_retries"
)


class Options(msgspec.Struct, frozen=True):
    """The location of the table, and options of its search and maintenance.

    `index` is built from `train_rows` rows on, `none` never; below, and if few rows pass a filter, every row is
    scored. `ef`, `nprobes` and `refine` are LanceDB's own. `optimize_every` is the number of changed rows after which
    files are merged, `batch` the number of rows written together.
    """

    where: str | None
    storage: dict[str, str] = msgspec.field(default_factory=dict)
    index: str = "hnsw_sq"
    train_rows: int = 50_000
    ef: int = 400
    nprobes: int = 20
    refine: int = 8
    optimize_every: int = 50_000
    batch: int = 4_096

    @property
    def remote(self) -> bool:
        """True if the table is in an object store."""
        return self.where is not None and self.where.startswith(BUCKETS)


def parse(url: str) -> Options:
    """The options of `lancedb:[PATH or s3://..., gs://..., az://...][?option=...]`.

    Raises:
        ConfigError: an option is unknown or not what it must be.
    """
    path, _, query = url.partition(":")[2].partition("?")
    given = dict(parse_qsl(query, keep_blank_values=True))
    index = given.pop("index", "hnsw_sq")
    if index not in KINDS:
        raise ConfigError("index.url", f"index={index} is unknown; use index={' or index='.join(KINDS)}")
    numbers = {name: _number(name, given.pop(name)) for name in NUMBERS if name in given}
    remote = path.startswith(BUCKETS)
    storage = {name: value for name, value in given.items() if remote and _STORAGE.fullmatch(name.lower())}
    unknown = [name for name in given if name not in storage]
    if unknown:
        known = ", ".join(("index", *NUMBERS))
        more = "" if remote else "; storage options belong to s3://, gs:// and az:// alone"
        raise ConfigError("index.url", f"unknown option {', '.join(unknown)}; known are {known}{more}")
    return Options(path or None, storage, index, **numbers)


def _number(name: str, value: str) -> int:
    if not value.isdecimal() or not int(value):
        raise ConfigError("index.url", f"{name}={value} is wrong; a whole number from 1 on is needed")
    return int(value)


def table_name(space: str, dim: int) -> str:
    """The table of a vector space: letters, digits, `_` and `-` alone, no two spaces the same."""
    safe = re.sub(r"[^A-Za-z0-9_-]+", "_", space)[:60]
    mark = "" if safe == space else "_" + blake2b(space.encode(), digest_size=4).hexdigest()
    return f"memoranda_{safe}{mark}_{dim}"
