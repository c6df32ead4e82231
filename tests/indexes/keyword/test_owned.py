"""Terms as a tenant's own: none is split, none is another's."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memoranda.indexes.keyword.owned import owned, owner
from memoranda.text.analysis import index_terms


@given(st.text(), st.text())
def test_the_owned_terms_are_the_terms_behind_the_owner(tenant, text):
    first = owner(tenant)
    assert owned(tenant, text).split() == [first + term for term in index_terms(text)]
    assert first.isalnum()
    assert len(first) == 16


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"])))
def test_tenants_have_owners_of_their_own(tenant, other):
    assert (owner(tenant) == owner(other)) == (tenant == other)


def test_no_character_makes_a_term_with_a_space_in_it():
    text = " ".join(map(chr, (*range(0xD800), *range(0xE000, 0x110000))))
    assert not any(char.isspace() for term in set(index_terms(text)) for char in term)
