"""Sessions for callers without an event loop."""

from __future__ import annotations

from memoranda.concurrency.portal import Portal, blocking
from memoranda.sessions.sessions import Sessions


class BlockingSessions:
    """`sessions.Sessions`, method for method."""

    def __init__(self, inner: Sessions, portal: Portal) -> None:
        self.inner = inner
        self.portal = portal

    observe = blocking(Sessions.observe)
    get = blocking(Sessions.get)
    list = blocking(Sessions.list)
    messages = blocking(Sessions.messages)
    close = blocking(Sessions.close)
    summarize = blocking(Sessions.summarize)
    save_summary = blocking(Sessions.save_summary)
    fail_summary = blocking(Sessions.fail_summary)
    update_message = blocking(Sessions.update_message)
    delete_message = blocking(Sessions.delete_message)
    delete = blocking(Sessions.delete)
