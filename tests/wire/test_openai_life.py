"""The whole life of a vector store with nothing but the `openai` package, as an application would write it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import openai
import pytest

RECIPES = {
    "soup.md": "# Soup\n\nBoil the leeks for twenty minutes. Add cream and pepper at the end.",
    "bread.md": "# Bread\n\nKnead flour, water and salt. Let the dough rest overnight in the cellar.",
    "cake.txt": "Beat six eggs with sugar. Fold in the walnuts. Bake the cake for an hour.",
    "salad.html": "<html><title>Salad</title><body><p>Slice cucumbers thinly.</p></body></html>",
}


def folder(path: Path) -> list[Path]:
    for name, text in RECIPES.items():
        (path / name).write_text(text, "utf-8")
    return [path / name for name in RECIPES]


def test_with_the_blocking_client(served: Any, tmp_path: Path) -> None:
    paths = folder(tmp_path)
    with openai.OpenAI(base_url=f"{served().url}/v1", api_key="none", max_retries=0) as client:
        store = client.vector_stores.create(name="recipes", metadata={"kitchen": "small"})
        assert client.vector_stores.retrieve(store.id).name == "recipes"

        first = client.vector_stores.files.upload_and_poll(
            vector_store_id=store.id, file=paths[0], attributes={"course": "first"}
        )
        assert first.status == "completed", first.last_error
        batch = client.vector_stores.file_batches.upload_and_poll(store.id, files=paths[1:])
        assert (batch.status, batch.file_counts.completed) == ("completed", 3)

        listed = [file.id for file in client.vector_stores.files.list(store.id, limit=1)]
        assert len(listed) == len(set(listed)) == 4
        assert len(list(client.vector_stores.files.list(store.id, filter="completed"))) == 4
        assert [one.id for one in client.vector_stores.list(limit=1)] == [store.id]

        found = client.vector_stores.search(store.id, query="let the dough rest overnight", max_num_results=1)
        assert [hit.filename for hit in found] == ["bread.md"]
        only: Any = {"type": "eq", "key": "course", "value": "first"}
        assert [
            hit.filename for hit in client.vector_stores.search(store.id, query="bake", filters=only)
        ] == ["soup.md"]

        client.vector_stores.files.update(first.id, vector_store_id=store.id, attributes={"course": "second"})
        assert client.vector_stores.search(store.id, query="bake", filters=only).data == []
        content = client.vector_stores.files.content(first.id, vector_store_id=store.id)
        assert "Boil the leeks" in "".join(part.text or "" for part in content)
        assert client.files.content(first.id).read() == paths[0].read_bytes()

        client.vector_stores.update(store.id, name="all recipes")
        client.vector_stores.files.delete(first.id, vector_store_id=store.id)
        assert client.vector_stores.search(store.id, query="boil the leeks", max_num_results=50).data
        assert first.id not in [
            hit.file_id for hit in client.vector_stores.search(store.id, query="boil the leeks")
        ]
        for file in client.files.list():
            assert client.files.delete(file.id).deleted
        assert client.vector_stores.files.list(store.id).data == []
        assert client.vector_stores.delete(store.id).deleted
        with pytest.raises(openai.NotFoundError):
            client.vector_stores.retrieve(store.id)
        assert (client.vector_stores.list().data, client.files.list().data) == ([], [])


@pytest.mark.slow
def test_with_the_asynchronous_client(served: Any, tmp_path: Path) -> None:
    asyncio.run(_life(served().url, folder(tmp_path)))


async def _life(url: str, paths: list[Path]) -> None:
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
        store = await client.vector_stores.create(name="recipes")
        files, batches = client.vector_stores.files, client.vector_stores.file_batches
        first = await files.upload_and_poll(
            vector_store_id=store.id, file=paths[0], attributes={"course": "first"}
        )
        assert first.status == "completed", first.last_error
        batch = await batches.upload_and_poll(store.id, files=paths[1:])
        assert (batch.status, batch.file_counts.completed) == ("completed", 3)
        assert (
            len([one async for one in batches.list_files(batch.id, vector_store_id=store.id, limit=2)]) == 3
        )

        listed = [file.id async for file in files.list(store.id, limit=1, filter="completed")]
        assert len(listed) == len(set(listed)) == 4
        found = await client.vector_stores.search(store.id, query="beat six eggs", max_num_results=1)
        assert [hit.filename for hit in found.data] == ["cake.txt"]
        changed = await files.update(first.id, vector_store_id=store.id, attributes={"course": "second"})
        assert changed.attributes == {"course": "second"}
        content = await files.content(first.id, vector_store_id=store.id)
        assert "Boil the leeks" in "".join(part.text or "" for part in content.data)

        assert (await files.delete(first.id, vector_store_id=store.id)).deleted
        assert (await client.vector_stores.delete(store.id)).deleted
        with pytest.raises(openai.NotFoundError):
            await client.vector_stores.search(store.id, query="eggs")
        assert [one.id async for one in client.files.list(limit=2)]
