"""OCR: small text, words and their positions, and no repeated reading."""

from __future__ import annotations

from typing import Any

import pytest
from PIL import Image, ImageDraw, ImageFont

from interpreter import OpenInterpreter
from interpreter.computer_api.screen.display import Display
from interpreter.computer_api.screen.display import pictures as ocr
from interpreter.computer_api.screen.display.finding import name_similarity, read_matches
from interpreter.computer_api.screen.display.pictures import Line, Word
from interpreter.computer_api.screen.platforms import Box
from interpreter.computer_api.tool import Picture
from screen.desktop import Desktop
from screen.drawing import Canvas
from screen.word_page import FONTS, WORDS, word_page


@pytest.fixture
def display() -> Display:
    made: Display = OpenInterpreter().computer.display
    return made


@pytest.fixture
def read_areas(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The sizes of the images that the OCR engine reads."""
    sizes: list[tuple[int, int]] = []
    real = ocr.engine()

    class Counting:
        def read(self, pixels: Any) -> list[Line]:
            sizes.append((pixels.shape[1], pixels.shape[0]))
            return real.read(pixels)

    monkeypatch.setattr(ocr, "engine", Counting)
    return sizes


def note(*lines: str, size: int = 13, width: int = 260) -> Image.Image:
    image = Image.new("RGB", (width, 26 * len(lines) + 14), "white")
    font = ImageFont.truetype(FONTS.format(""), size)
    for number, line in enumerate(lines):
        ImageDraw.Draw(image).text((10, 10 + 26 * number), line, font=font, fill="black")
    return image


def test_words_of_9_to_14_pixels_are_found_at_their_positions(display: Display) -> None:
    page, places = word_page()
    assert len(places) == len(WORDS) == 124
    lines = display._lines(Picture.of(page))
    hits = 0
    for word, (x, y) in places.items():
        hits += any(each.box.grown(3, 3).has(x, y) for each in read_matches(lines, word))
    assert hits >= 115


def test_lines_have_their_words_in_order(display: Display) -> None:
    picture = Picture.of(note("Open the second file", "Close it again"))
    assert display.get_text_as_list_of_lists(picture) == [["Open", "the", "second", "file"], ["Close", "it", "again"]]


def test_a_word_in_a_line_has_its_own_box(display: Display) -> None:
    image = note("Open the second file", size=16)
    (found,) = display.find_text("second", Picture.of(image, left=100, top=50, scale=2))
    font = ImageFont.truetype(FONTS.format(""), 16)
    before = font.getlength("Open the ")
    middle = 10 + before + font.getlength("second") / 2
    assert found["text"] == "second" and found["similarity"] == 1
    assert abs(found["x"] - (100 + 2 * middle)) < 16
    assert 50 + 2 * 8 < found["y"] < 50 + 2 * 32
    width = found["box"][2]
    assert abs(found["coordinates"][0] * image.width - middle) < 8 and width < 2 * font.getlength("second") + 40


def test_only_changed_areas_are_read_again(
    desktop: Desktop, display: Display, read_areas: list[tuple[int, int]]
) -> None:
    canvas = Canvas(desktop)
    canvas.clear()
    canvas.put(note("Apples and pears", "Plums and quinces"), 100, 100)
    assert len(display.find_text("pears")) == 1
    first = list(read_areas)
    assert first and max(width for width, _ in first) < 400, "the empty part of the screen is not read"
    read_areas.clear()
    assert len(display.find_text("quinces")) == 1
    assert read_areas == [], "nothing changed, so nothing is read"
    canvas.put(note("Cherries"), 700, 500)
    assert len(display.find_text("Cherries")) == 1 and len(display.find_text("pears")) == 1
    assert len(read_areas) == 1 and read_areas[0][1] < 120
    canvas.fill(0, 0, 0, 600, 300)
    read_areas.clear()
    assert display.find_text("pears") == [] and len(display.find_text("Cherries")) == 1
    assert read_areas == []
    canvas.clear()


def test_a_growing_line_is_read_as_a_whole(desktop: Desktop, display: Display) -> None:
    canvas = Canvas(desktop)
    canvas.clear()
    canvas.put(note("One two"), 100, 100)
    assert display.get_text_as_list_of_lists() == [["One", "two"]]
    canvas.put(note("One two three"), 100, 100)
    assert display.get_text_as_list_of_lists() == [["One", "two", "three"]]
    canvas.clear()


@pytest.mark.parametrize(
    ("wanted", "name", "least", "most"),
    [
        ("Save", "Save", 1, 1),
        ("save", "Save…", 0.97, 0.97),
        ("Name", "Name:", 0.97, 0.97),
        ("filter", "flter", 0.85, 0.96),
        ("Save", "Safe", 0, 0.77),
        ("OK", "On", 0, 0),
        ("Save", "Save As", 0, 0.77),
    ],
)
def test_similarity_of_names(wanted: str, name: str, least: float, most: float) -> None:
    assert least <= name_similarity(wanted, name) <= most


def line(*words: str) -> Line:
    return Line(tuple(Word(word, Box(100 * place, 0, 90, 20)) for place, word in enumerate(words)))


def test_exact_matches_in_lines_come_first() -> None:
    lines = [line("Please", "sign", "in", "here"), line("Sign", "In"), line("signin")]
    found = read_matches(lines, "Sign In")
    assert [each.text for each in found] == ["Sign In", "sign in", "signin"]
    assert found[0].similarity == 1 and found[1].box == Box(100, 0, 190, 20)
    assert read_matches(lines, "sign out") == []


def test_a_misread_space_still_matches() -> None:
    (found,) = read_matches([line("mea", "dow")], "meadow")
    assert found.box == Box(0, 0, 190, 20)


def test_an_underlined_mnemonic_letter_still_matches() -> None:
    (found,) = read_matches([line("QK"), line("Cancel")], "OK")
    assert found.text == "QK" and 0.8 < found.similarity < 1
