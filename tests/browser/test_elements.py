"""Elements are found by name, and shown in portions; no browser is needed to tell."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpreter.computer_api.browser.boundary import ElementError
from interpreter.computer_api.browser.reading import (
    FIELDS,
    IS_REF,
    below,
    elements,
    fitting,
    matching,
    named,
)

PAGE = """- main [ref=e2]:
  - heading "Shop" [level=1] [ref=e3]
  - generic [ref=e4]:
    - text: Email
    - textbox "Email" [ref=e5] [cursor=pointer]
  - button "Say \\"hi\\"" [ref=e6]
  - 'button "Price: 3" [ref=e7]'
  - link "Delete" [ref=e8]:
    - /url: /delete?id=1
  - link "Delete" [ref=e9]
  - paragraph [ref=e10]: "It is [ref=e99] late"
  - button "Delete all" [ref=f1e11]
"""


@pytest.mark.parametrize(
    ("name", "ref"),
    [
        ("Shop", "e3"),
        ("email", "e5"),
        ('Say "hi"', "e6"),
        ("Price: 3", "e7"),
        ("  it is   [ref=e99] late", "e10"),
        ("delete all", "f1e11"),
        ("price", "e7"),
    ],
)
def test_an_element_is_found_by_its_name(name: str, ref: str) -> None:
    assert named(elements(PAGE), name).ref == ref


def test_a_field_is_preferred_for_filling() -> None:
    page = '- button "Name" [ref=e1]\n- textbox "Name" [ref=e2]'
    assert named(elements(page), "Name", FIELDS).ref == "e2"
    with pytest.raises(ElementError, match="2 elements"):
        named(elements(page), "Name")


def test_several_are_listed_with_their_refs() -> None:
    with pytest.raises(ElementError, match=r'2 elements .* "Delete": e8 \(link "Delete"\), e9 \(link "Delete"\)'):
        named(elements(PAGE), "Delete")


def test_nothing_names_what_is_close() -> None:
    with pytest.raises(ElementError, match=r'Nothing .* "Emial".*e5'):
        named(elements(PAGE), "Emial")
    with pytest.raises(ElementError, match="snapshot"):
        named(elements(PAGE), "")


@pytest.mark.parametrize(
    ("text", "is_one"), [("e5", True), ("f1e22", True), ("e", False), ("else", False), ("5", False)]
)
def test_what_is_a_ref(text: str, is_one: bool) -> None:
    assert bool(IS_REF.fullmatch(text)) is is_one


def test_a_find_shows_what_the_matches_are_in() -> None:
    found = matching(elements(PAGE), "/delete")
    assert [each.ref for each in found] == ["e2", "e8", "e8"]


@given(st.integers(30, 400))
def test_portions_make_up_the_whole(budget: int) -> None:
    found = elements(PAGE)
    seen: set[int] = set()
    start: int | None = 0
    while start is not None:
        taken, following = fitting(below(found, start), budget + 80)
        assert following is None or following > start
        seen |= {each.number for each in taken}
        start = following
    assert seen == {each.number for each in found}
