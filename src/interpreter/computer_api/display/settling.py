"""Waiting for the screen to come to rest, and what has changed on it."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from interpreter.computer_api.display.boxes import Box
from interpreter.computer_api.display.pictures import pixels_of, scaled
from interpreter.computer_api.display.reading import changed_boxes

if TYPE_CHECKING:
    from interpreter.computer_api.display.screens import Screens, Watch
    from interpreter.computer_api.tool import Picture

# A cursor that blinks or a small wheel that turns is no change to wait for.
_SMALL = 40 * 40
_LOOKS_A_SECOND = 10
_LEAST_LOOKS = 3


def wait_until_still(screens: Screens, region: Box, quiet: float, limit: float) -> bool:
    """Whether nothing of any size changed in the region for `quiet` seconds, before `limit` seconds were over."""
    watch = screens.watch()
    if watch is None:
        return _by_looking(screens, region, quiet, limit)
    try:
        return _by_events(watch, region, quiet, limit)
    finally:
        watch.close()


def _by_events(watch: Watch, region: Box, quiet: float, limit: float) -> bool:
    now = time.monotonic()
    end, changed = now + limit, now
    while now < end:
        rest = changed + quiet - now
        if rest <= 0:
            return True
        boxes = watch.wait(min(rest, end - now))
        now = time.monotonic()
        if any(box.within(region).area > _SMALL for box in boxes):
            changed = now
    return changed + quiet <= now


def _by_looking(screens: Screens, region: Box, quiet: float, limit: float) -> bool:
    """For systems that tell of no changes: pictures are compared."""
    pause = threading.Event()
    now = time.monotonic()
    end, changed, looks, before = now + limit, now, 0, pixels_of(screens.grab(region))
    while now < end:
        pause.wait(1 / _LOOKS_A_SECOND)
        pixels = pixels_of(screens.grab(region))
        now = time.monotonic()
        if any(box.area > _SMALL for box in _differences(before, pixels)):
            before, changed, looks = pixels, now, 0
        looks += 1
        if now - changed >= quiet and looks >= _LEAST_LOOKS:
            return True
    return False


def _differences(before: Any, after: Any) -> list[Box]:
    return changed_boxes((before != after).any(axis=2))


def changed_since(screens: Screens, picture: Picture) -> list[Box]:
    """The boxes of the screen that are not any more as in a picture of it."""
    box = Box.between(
        picture.left,
        picture.top,
        picture.left + picture.width * picture.scale,
        picture.top + picture.height * picture.scale,
    )
    whole = picture.about.get("box")
    box = Box(*whole) if whole else box
    longest = None if picture.scale == 1 else round(max(box.width, box.height) / picture.scale)
    now = pixels_of(scaled(screens.grab(box), box, longest).pil())
    before = pixels_of(picture.pil())
    found = _differences(before, now) if before.shape == now.shape else [Box(0, 0, picture.width, picture.height)]
    return [
        Box.between(*picture.on_screen(each.left, each.top), *picture.on_screen(each.right, each.bottom))
        for each in found
    ]
