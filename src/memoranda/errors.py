"""Everything Memoranda raises on purpose, as one tree.

MemorandaError
├── InvalidInput          a field is wrong; names the field and the fix
│   ├── ConfigError       the same, for a configuration key
│   ├── QuotaExceeded     it would be more than the tenant may hold
│   └── DimensionMismatch a vector of the wrong length or space
├── NotFound              no such thing, or not yours to see
├── Conflict              the write contradicts what is stored
├── Forbidden             the subject's role does not allow it
├── Unauthorized          no key, or an unknown one
│   └── MissingKey        no key was sent, or not in the header's form
├── FolderInUse           another process writes this folder
├── StorageError          rows could not be read or written; nothing was half done
├── IndexUnavailable      a derived index did not answer; rows are safe
├── EmbedderUnavailable   no embedding could be made; words still work
├── SpendingLimit         the tenant has spent what it may in a day
└── ModelError            no answer of the language model can be used
    ├── ModelUnavailable  it did not answer, or not in time
    ├── ModelRefused      it will not take the request
    │   └── UnknownModel  it has no model of that name
    └── ModelBroken       its answer broke off or made no sense
"""

from __future__ import annotations


class MemorandaError(Exception):
    """Something Memoranda refuses or could not do, said in one sentence."""


class InvalidInput(MemorandaError):
    """A value is not acceptable. `field` is the path of the value, as the caller wrote it."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.field = field


class ConfigError(InvalidInput):
    """A configuration key or value is wrong; the message names it and the fix."""


class QuotaExceeded(InvalidInput):
    """It would be more than the tenant may hold. `quota` is the bound that stands in the way."""

    def __init__(self, field: str, message: str, quota: str) -> None:
        super().__init__(field, message)
        self.quota = quota


class DimensionMismatch(InvalidInput):
    """A vector does not belong to the vector space it was offered to."""


class NotFound(MemorandaError):
    """No such object, or it is not visible to the caller; the two are deliberately indistinguishable."""


class Conflict(MemorandaError):
    """The write contradicts what is stored; nothing was changed."""


class Forbidden(MemorandaError):
    """The subject's role does not allow this."""


class Unauthorized(MemorandaError):
    """No bearer key was sent, or it is not a known one."""


class MissingKey(Unauthorized):
    """No key was sent, or the Authorization header does not have the form that the route takes."""


class FolderInUse(MemorandaError):
    """Another process has this folder open for writing. `url` is its server, when it runs one."""

    def __init__(self, message: str, url: str | None = None) -> None:
        super().__init__(message)
        self.url = url


class StorageError(MemorandaError):
    """The rows could not be read or written; nothing was half done."""


class DamagedData(StorageError):
    """A stored text or file is not what was written: its hash differs. It is neither returned nor quoted."""


class IndexUnavailable(MemorandaError):
    """A derived index did not answer. Rows are safe; the other half of search still works."""


class EmbedderUnavailable(MemorandaError):
    """No embedding could be made. Writes are kept, and search by words still works."""


class SpendingLimit(MemorandaError):
    """The tenant has spent what it may in a day. `limit` names the bound, which ends in `seconds`."""

    def __init__(self, message: str, limit: str = "", seconds: float = 1.0) -> None:
        super().__init__(message)
        self.limit = limit
        self.seconds = seconds


class ModelError(MemorandaError):
    """No answer of the language model can be used. `usage` is the estimated `TokenUsage` of a background call until
    then; None if nothing came."""

    usage: object = None


class ModelUnavailable(ModelError):
    """The language model did not answer, or not in time; another try may do better."""


class ModelRefused(ModelError):
    """The language model will not take this request, however often it is sent. `status` is its own, or 0."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class UnknownModel(ModelRefused):
    """The language model's server has no model of this name."""


class ModelBroken(ModelError):
    """The language model's answer broke off, or made no sense."""
