"""A page of words in small fonts with their positions, to measure OCR."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

FONTS = "/usr/share/fonts/truetype/dejavu/DejaVuSans{}.ttf"
MIN_SIZE, MAX_SIZE = 9, 14
WORDS = """
account address archive author balance battery blank border branch browser budget button cancel capture castle center
change charter choice circle client climate column common config contact copper corner county create credit custom
damage danger decide default delete deliver design detail device dinner direct discard display docker domain double
download driver editor effect empty enable energy engine escape events example export factor family feature figure
filter finish folder follow format forward frozen future gallery garden general global grammar ground handle harbor
header height hidden history holder import income index indoor insert install invite island issues jacket journal
junior kernel keyboard kitchen labels ladder language latest layout leader legend letter library license linear listen
local logout lumber machine manual market master matrix meadow memory merge metal
""".split()
COLOURS = [("white", "black"), ("#eeeeee", "#333333"), ("#203040", "white"), ("white", "#555555")]


def word_page() -> tuple[Image, dict[str, tuple[int, int]]]:
    """Draw the page as an image of 1280 x 800; return it, and the middle of each word."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", (1280, 800), "white")
    draw, places, scatter = ImageDraw.Draw(image), {}, random.Random(7)
    for number, word in enumerate(WORDS):
        size = MIN_SIZE + number % (MAX_SIZE - MIN_SIZE + 1)
        font = ImageFont.truetype(FONTS.format("-Bold" if number // 6 % 3 == 2 else ""), size)
        corner = 20 + number % 8 * 155 + scatter.randrange(20), 20 + number // 8 * 48 + scatter.randrange(10)
        left, top, right, bottom = draw.textbbox(corner, word, font=font)
        paper, ink = COLOURS[number % len(COLOURS)]
        draw.rectangle((left - 6, top - 4, right + 6, bottom + 4), fill=paper)
        draw.text(corner, word, font=font, fill=ink)
        places[word] = (round((left + right) / 2), round((top + bottom) / 2))
    return image, places
