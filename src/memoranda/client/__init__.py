"""The library's verbs over HTTP, against a server that has the data folder open."""

from memoranda.client.client import AsyncClient, Client

__all__ = ["AsyncClient", "Client"]
