"""Finding elements by name and showing them in portions, without a browser."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpreter.computer_api.browser.boundary import ElementError
from interpreter.computer_api.browser.reading import (
    FIELDS,
    IS_REF,
    Element,
    below,
    elements,
    fitting,
    matching,
    missing,
    named,
)

ROWS: list[tuple[int, str, str, str, str]] = [
    (0, "main", "", "e2", ""),
    (1, "heading", "Shop", "e3", ""),
    (1, "text", "", "e4", "Email"),
    (1, "textbox", "Email", "e5", "ann@example.org"),
    (1, "button", 'Say "hi"', "e6", ""),
    (1, "button", "Price: 3", "e7", ""),
    (1, "list", "", "e12", ""),
    (2, "link", "Delete", "e8", ""),
    (2, "link", "Delete", "e9", ""),
    (1, "text", "", "e10", "It is [ref=e99] late"),
    (1, "button", "Delete all", "f1e11", ""),
]


def page(rows: list[tuple[int, str, str, str, str]] = ROWS) -> list[Element]:
    return elements([depth, role, name, [], ref, text, bool(name)] for depth, role, name, ref, text in rows)


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
    found = named(page(), name)
    assert found is not None and found.ref == ref


def test_only_a_control_with_the_exact_name_is_certain() -> None:
    assert named(page(), "Price: 3", certainly=True) is not None
    assert named(page(), "price", certainly=True) is None and named(page(), "Shop", certainly=True) is None


def test_lines_show_role_name_ref_and_value() -> None:
    assert [each.line for each in page()[3:6]] == [
        '  - textbox "Email" [ref=e5]: ann@example.org',
        '  - button "Say \\"hi\\"" [ref=e6]',
        '  - button "Price: 3" [ref=e7]',
    ]


def test_a_field_is_preferred_for_filling() -> None:
    form = page([(0, "button", "Name", "e1", ""), (0, "textbox", "Name", "e2", "")])
    found = named(form, "Name", FIELDS)
    assert found is not None and found.ref == "e2"
    with pytest.raises(ElementError, match="2 elements"):
        named(form, "Name")


def test_several_matches_are_listed_with_their_refs() -> None:
    with pytest.raises(ElementError, match=r'2 elements .* "Delete": e8 \(link "Delete"\), e9 \(link "Delete"\)'):
        named(page(), "Delete")


def test_a_missing_element_lists_similar_or_available_ones() -> None:
    assert named(page(), "Emial") is None and named(page(), "") is None
    assert re.search(r'Nothing .* "Emial", even after 3 seconds\. Similar: e5', str(missing(page(), "Emial", 3)))
    assert "Available: e5 (textbox" in str(missing(page(), "Checkout", 3))


@pytest.mark.parametrize(
    ("text", "is_one"), [("e5", True), ("f1e22", True), ("e", False), ("else", False), ("5", False)]
)
def test_refs_are_recognized(text: str, is_one: bool) -> None:
    assert bool(IS_REF.fullmatch(text)) is is_one


def test_find_includes_the_parents_of_matches() -> None:
    found = matching(page(), "hi")
    assert [each.ref for each in found] == ["e2", "e6"]


@given(st.integers(30, 400))
def test_portions_cover_the_whole_page(budget: int) -> None:
    found = page()
    seen: set[int] = set()
    start: int | None = 0
    while start is not None:
        taken, following = fitting(below(found, start), budget + 80)
        assert following is None or following > start
        seen |= {each.number for each in taken}
        start = following
    assert seen == {each.number for each in found}
