"""Who may see, fill and own what: the whole table, and random worlds held against a model of a few lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoranda.errors import Forbidden, NotFound
from memoranda.knowledge.values import NewStoreFile, PassageQuery, StoreChange

ACTORS: dict[str, dict[str, str]] = {
    "owner": {"user": "ann"},
    "writer": {"user": "bob"},
    "member": {"user": "cat"},
    "reader": {"user": "rob", "role": "reader"},
    "service": {"role": "service"},
    "service for a user": {"user": "cat", "role": "service"},
    "admin": {"role": "admin"},
    "foreign member": {"user": "ann", "tenant": "elsewhere"},
    "foreign admin": {"role": "admin", "tenant": "elsewhere"},
}
# What an actor gets, for the verbs that read, that fill, that change and delete: . yes, F Forbidden, - NotFound.
TABLE = {
    "private": {
        "owner": "...", "writer": "..F", "member": "---", "reader": "-FF", "service": "...",
        "service for a user": "---", "admin": "...", "foreign member": "---", "foreign admin": "---",
    },
    "tenant": {
        "owner": "...", "writer": "..F", "member": ".FF", "reader": ".FF", "service": "...",
        "service for a user": ".FF", "admin": "...", "foreign member": "---", "foreign admin": "---",
    },
    "everyone": {
        "owner": "...", "writer": "..F", "member": ".FF", "reader": ".FF", "service": "...",
        "service for a user": ".FF", "admin": "...", "foreign member": ".FF", "foreign admin": ".FF",
    },
}  # fmt: skip


def outcome(verb: Callable[..., Any], *args: Any) -> str:
    """How a verb ends, in one letter."""
    try:
        verb(*args)
    except NotFound:
        return "-"
    except Forbidden:
        return "F"
    return "."


def shared(shelf: Any, sharing: str, text: str = "the heron stands in the reeds") -> tuple[str, str]:
    """The ids of ann's store and of the file in it, shared as wanted; bob is a writer."""
    ann = shelf.by("ann")
    made = shelf.store(text, by=ann, writers=["bob"])
    shelf.admin.stores.update(made.id, StoreChange(sharing=sharing))  # type: ignore[arg-type]
    return made.id, ann.stores.files(made.id).data[0].id


@pytest.mark.parametrize("actor", ACTORS)
@pytest.mark.parametrize("sharing", TABLE)
def test_the_whole_table(shelf: Any, sharing: str, actor: str) -> None:
    store, file = shared(shelf, sharing)
    batch = shelf.by("ann").stores.create_batch(store, [NewStoreFile(file_id=file)]).id
    who = shelf.by(**ACTORS[actor])
    mine = file if actor == "reader" else shelf.file("a heron of mine", by=who).id
    asked = PassageQuery(queries=["heron"])
    reading = {
        "get": lambda: who.stores.get(store),
        "search": lambda: who.stores.search([store], asked),
        "files": lambda: who.stores.files(store),
        "file": lambda: who.stores.file(store, file),
        "text": lambda: who.stores.text(store, file),
        "chunks": lambda: who.stores.chunks(store, file),
        "batch": lambda: who.stores.batch(store, batch),
        "files of the batch": lambda: who.stores.files(store, batch_id=batch),
    }
    filling = {
        "attach": lambda: who.stores.attach(store, [NewStoreFile(file_id=mine)]),
        "create_batch": lambda: who.stores.create_batch(store, [NewStoreFile(file_id=mine)]),
        "cancel_batch": lambda: who.stores.cancel_batch(store, batch),
        "set_attributes": lambda: who.stores.set_attributes(store, file, {"by": actor}),
        "detach": lambda: who.stores.detach(store, file),
    }
    owning = {
        "update": lambda: who.stores.update(store, StoreChange(name="renamed")),
        "delete": lambda: who.stores.delete(store),
    }
    wanted = TABLE[sharing][actor]
    ended = {}
    for verbs, letter in zip((reading, filling, owning), wanted, strict=True):
        for name, verb in verbs.items():
            ended[name] = (outcome(verb), letter)
    assert {name: got for name, (got, want) in ended.items() if got != want} == {}
    # What was refused changed nothing.
    if wanted[2] == "-" or "F" in wanted:
        held = shelf.admin.stores.get(store)
        assert held.name == ""
        if wanted[1] != ".":
            assert [one.id for one in shelf.admin.stores.files(store).data] == [file]
            assert shelf.admin.stores.file(store, file).attributes == {}
    else:
        with pytest.raises(NotFound):
            shelf.admin.stores.get(store)


@pytest.mark.parametrize(
    ("actor", "own", "nobodys"),
    [
        ("owner", "...", "..."),
        ("writer", "---", "..."),
        ("member", "---", "..."),
        ("reader", "--F", "..F"),
        ("service", "...", "..."),
        ("service for a user", "---", "..."),
        ("admin", "...", "..."),
        ("foreign member", "---", "---"),
        ("foreign admin", "---", "---"),
    ],
)
def test_a_file_by_its_id(shelf: Any, actor: str, own: str, nobodys: str) -> None:
    files = {own: shelf.file("of ann", by=shelf.by("ann")).id}
    who = shelf.by(**ACTORS[actor])
    for id_, wanted in ((files[own], own), (shelf.file("of nobody").id, nobodys)):
        seen = id_ in {one.id for one in who.files.list().data}
        verbs = (who.files.get, who.files.content, who.files.delete)
        assert "".join(outcome(verb, id_) for verb in verbs) == wanted
        assert seen == (wanted[0] == ".")
        assert (outcome(shelf.admin.files.get, id_) == "-") == (wanted[2] == ".")


def test_uploads_are_their_owners(shelf: Any) -> None:
    ann = shelf.by("ann")
    begun = ann.uploads.create(filename="a.txt", bytes=3, purpose="assistants").id
    for actor, wanted in (
        ("member", "-"),
        ("service for a user", "-"),
        ("foreign admin", "-"),
        ("admin", "."),
    ):
        who = shelf.by(**ACTORS[actor])
        assert outcome(lambda who=who: who.uploads.get(begun)) == wanted
        if wanted == "-":
            assert outcome(lambda who=who: who.uploads.add_part(begun, several(b"abc"))) == "-"
            assert outcome(lambda who=who: who.uploads.complete(begun, ["part_1"])) == "-"
            assert outcome(lambda who=who: who.uploads.cancel(begun)) == "-"
    rob = shelf.by(**ACTORS["reader"])
    assert outcome(lambda: rob.uploads.create(filename="a", bytes=1, purpose="vision")) == "F"
    assert outcome(lambda: rob.files.upload(several(b"abc"), "a.txt")) == "F"
    assert outcome(lambda: rob.stores.create()) == "F"
    assert ann.uploads.get(begun).status == "pending"


async def several(*given: bytes) -> Any:
    """Pieces of a file."""
    for piece in given:
        yield piece


def test_a_file_that_another_may_not_see_is_not_attached(shelf: Any) -> None:
    store, _ = shared(shelf, "tenant")
    secret = shelf.file("of cat alone", by=shelf.by("cat")).id
    foreign = shelf.file("of elsewhere", by=shelf.by(tenant="elsewhere")).id
    bob = shelf.by("bob")
    for id_ in (secret, foreign, "file-unknown", "\x00", "\ud800", "'", ""):
        good = shelf.file("of bob", by=bob).id
        files = [NewStoreFile(file_id=good), NewStoreFile(file_id=id_)]
        for verb in (bob.stores.attach, bob.stores.create_batch):
            with pytest.raises((NotFound, ValueError) if id_ else Exception, match=r"file"):
                verb(store, files)
        assert good not in {one.id for one in bob.stores.files(store).data}
    assert shelf.rows("SELECT count(*) FROM file_batches WHERE tenant_id = ?", shelf.tenant) == [(0,)]


def test_ids_that_nothing_can_have_are_not_there(shelf: Any) -> None:
    made = shelf.store("the heron").id
    for id_ in ("\x00", "\ud800", "' OR 1=1 --", "vs_\x00", "", made + " "):
        for verb in (
            lambda id_=id_: shelf.admin.stores.get(id_),
            lambda id_=id_: shelf.admin.stores.file(made, id_),
            lambda id_=id_: shelf.admin.stores.batch(made, id_),
            lambda id_=id_: shelf.admin.stores.detach(made, id_),
            lambda id_=id_: shelf.admin.files.get(id_),
            lambda id_=id_: shelf.admin.files.delete(id_),
            lambda id_=id_: shelf.admin.uploads.get(id_),
            lambda id_=id_: shelf.search([made, id_], "heron"),
        ):
            assert outcome(verb) == "-"


def test_only_an_admin_opens_a_store_to_all_tenants(shelf: Any) -> None:
    ann = shelf.by("ann")
    made = ann.stores.create(sharing="tenant")
    for verb in (
        lambda: ann.stores.create(sharing="everyone"),
        lambda: ann.stores.update(made.id, StoreChange(sharing="everyone")),
        lambda: shelf.by(role="service").stores.create(sharing="everyone"),
    ):
        with pytest.raises(Exception, match="sharing"):
            verb()
    assert shelf.admin.stores.update(made.id, StoreChange(sharing="everyone")).sharing == "everyone"
    assert ann.stores.update(made.id, StoreChange(name="n")).sharing == "everyone"


def test_a_store_for_everyone_gives_its_own_chunks_and_no_others(shelves: Any) -> None:
    here, there = shelves(), shelves()
    open_, file = shared(here, "everyone")
    closed = here.store("the heron that is nobody else's").id
    own = there.store("the heron of there").id
    found = there.search([open_], "heron", limit=50)
    assert [(hit.vector_store_id, hit.file_id) for hit in found.data] == [(open_, file)]
    both = there.search([open_, own], "heron", limit=50)
    assert {hit.vector_store_id for hit in both.data} == {open_, own}
    assert not any("nobody else's" in hit.text for hit in both.data)
    for ids in ([closed], [open_, closed], [own, closed]):
        with pytest.raises(NotFound):
            there.search(ids, "heron")
    assert open_ not in {one.id for one in there.admin.stores.list().data}
    with pytest.raises(NotFound):
        there.admin.files.get(file)
    wide = there.search(
        [open_, own], "heron", limit=50, neighbours=5, section=True, diversity=0.5, explain=True
    )
    assert {hit.vector_store_id for hit in wide.data} == {open_, own}
    here.admin.stores.update(open_, StoreChange(sharing="tenant"))
    with pytest.raises(NotFound):
        there.search([open_], "heron")


# --- random worlds -------------------------------------------------------------------------------------

TENANTS, USERS = 2, ("ann", "bob", None)


@dataclass
class Shared:
    """A store in the model."""

    tenant: int
    owner: str | None
    sharing: str
    writers: list[str]
    files: list[int] = field(default_factory=list)
    id: str = ""


@dataclass
class Kept:
    """A file in the model."""

    tenant: int
    owner: str | None
    id: str = ""


@dataclass(frozen=True)
class Who:
    """A subject in the model."""

    tenant: int
    user: str | None
    role: str

    @property
    def unbound(self) -> bool:
        return self.role == "admin" or (self.role == "service" and self.user is None)

    def has(self, owner: str | None) -> bool:
        return self.unbound or owner in (None, self.user)

    def sees(self, store: Shared) -> bool:
        if store.sharing == "everyone":
            return True
        inside = store.sharing == "tenant" or self.user in store.writers or self.has(store.owner)
        return store.tenant == self.tenant and inside


PEOPLE = [
    Who(tenant, user, role)
    for tenant in range(TENANTS)
    for user, role in (("ann", "member"), ("bob", "member"), ("bob", "reader"), (None, "service"), ("ann", "service"),
                       (None, "admin"))
]  # fmt: skip
kept = st.builds(Kept, st.integers(0, TENANTS - 1), st.sampled_from(USERS))
stores = st.builds(
    Shared,
    st.integers(0, TENANTS - 1),
    st.sampled_from(USERS),
    st.sampled_from(["private", "tenant", "everyone"]),
    st.lists(st.sampled_from(["ann", "bob"]), max_size=2, unique=True),
    st.lists(st.integers(0, 3), max_size=4, unique=True),
)


def build(shelf: Any, tenants: list[str], files: list[Kept], held: list[Shared]) -> None:
    """The model's world, in tenants of these names."""
    for number, file in enumerate(files):
        by = shelf.by(file.owner, tenant=tenants[file.tenant])
        file.id = shelf.file(f"the heron of file{number}", by=by).id
    for store in held:
        admin = shelf.by(tenant=tenants[store.tenant])
        by = shelf.by(store.owner, tenant=tenants[store.tenant])
        store.files = [at for at in store.files if at < len(files) and files[at].tenant == store.tenant]
        store.id = by.stores.create(writers=store.writers).id
        admin.stores.update(store.id, StoreChange(sharing=store.sharing))  # type: ignore[arg-type]
        if store.files:
            admin.stores.attach(store.id, [NewStoreFile(file_id=files[at].id) for at in store.files])
    shelf.settle()


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(files=st.lists(kept, max_size=4), held=st.lists(stores, min_size=1, max_size=4))
def test_nothing_of_one_is_in_anothers_answer(shelves: Any, files: list[Kept], held: list[Shared]) -> None:
    shelf, other = shelves(), shelves()
    tenants = [shelf.tenant, other.tenant]
    build(shelf, tenants, files, held)
    for who in PEOPLE:
        as_them = shelf.by(who.user, who.role, tenants[who.tenant])
        mine = {file.id for file in files if file.tenant == who.tenant and who.has(file.owner)}
        assert {one.id for one in as_them.files.list().data} == mine
        listed = {store.id for store in held if store.tenant == who.tenant and who.sees(store)}
        assert {one.id for one in as_them.stores.list(limit=100).data} == listed
        for store in held:
            assert outcome(as_them.stores.get, store.id) == (".-"[not who.sees(store)])
        open_ = [store for store in held if who.sees(store)]
        closed = [store for store in held if not who.sees(store)]
        if open_:
            found = shelf.search([one.id for one in open_], "heron", by=as_them, limit=50)
            got = sorted((hit.vector_store_id, hit.file_id) for hit in found.data)
            assert got == sorted((one.id, files[at].id) for one in open_ for at in one.files)
        if closed:
            with pytest.raises(NotFound):
                shelf.search([*(one.id for one in open_), closed[0].id], "heron", by=as_them)
