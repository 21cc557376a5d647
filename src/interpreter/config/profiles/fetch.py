"""Profiles from the net: fetched within limits, never used before somebody has said yes to what they hold."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from interpreter.config.profiles.places import Place
from interpreter.errors import ProfileError

if TYPE_CHECKING:
    from httpx import Response

LARGEST = 1_000_000
PATIENCE = 20.0
_SUFFIXES = {"application/json": ".json", "text/x-python": ".py"}


def fetch(place: Place) -> tuple[Place, str]:
    """The profile at an address: its place with what it is written in, and its text."""
    import httpx

    try:
        with (
            httpx.Client(follow_redirects=True, max_redirects=5, timeout=PATIENCE) as client,
            client.stream("GET", place.address) as answer,
        ):
            _check(place, answer)
            content = b""
            for piece in answer.iter_bytes():
                content += piece
                if len(content) > LARGEST:
                    raise ProfileError(f"{place.address} is larger than {LARGEST:,} bytes: that is no profile.")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ProfileError(f"{place.address} could not be fetched: {error or type(error).__name__}.") from error
    kind = answer.headers.get("content-type", "").partition(";")[0].strip()
    told = place.kind or _SUFFIXES.get(kind, ".yaml")
    return replace(place, told=told), content.decode("utf-8", "replace")


def _check(place: Place, answer: Response) -> None:
    if answer.status_code != 200:
        raise ProfileError(f"{place.address} could not be fetched: the server says {answer.status_code}.")
    if place.address.lower().startswith("https:") and answer.url.scheme != "https":
        raise ProfileError(f"{place.address} leads to {answer.url}, which is not encrypted.")
    if answer.headers.get("content-type", "").startswith("text/html"):
        raise ProfileError(f"{place.address} is a web page, not a profile. Give the address of the raw file.")
