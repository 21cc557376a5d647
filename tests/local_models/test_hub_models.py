"""`builtin/hf:OWNER/REPO/FILE.gguf`: any GGUF file of a hub, with the size and SHA-256 that the hub states."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interpreter.errors import DownloadError, WeightsMissingError
from interpreter.local_models.weights import download, file_of, from_hub, model_string, models_folder, own_files
from local_models.test_downloads import CONTENT, SUM, file_route
from routed_server import BREAK, Answer, RoutedServer, as_json
from terminal.person import ENTER, PROGRAM, Person

NAME = "hf:someone/Tiny-GGUF/tiny-q4_k_m.gguf"
TREE = "GET /api/models/someone/Tiny-GGUF/tree/main"
FILE = "GET /someone/Tiny-GGUF/resolve/main/tiny-q4_k_m.gguf"


def listed(path: str = "tiny-q4_k_m.gguf", checksum: str = SUM, **more: Any) -> dict[str, Any]:
    lfs = {"oid": checksum, "size": len(CONTENT), "pointerSize": 135}
    return {"type": "file", "oid": "a" * 40, "size": len(CONTENT), "path": path, "lfs": lfs, **more}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[RoutedServer]:
    readme = {"type": "file", "oid": "b" * 40, "size": 10, "path": "README.md"}
    with RoutedServer({TREE: as_json([readme, listed()]), FILE: file_route()}) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.address)
        yield server


def fetch(name: str = NAME) -> Path:
    for _ in download(from_hub(name), models_folder()):
        pass
    return file_of(name)


def test_a_file_is_fetched_with_the_stated_size_and_checksum(hub: RoutedServer, home: Path) -> None:
    row = from_hub(NAME)
    assert (row.size, row.sha256) == (len(CONTENT), SUM)
    assert hub.paths() == [TREE], "nothing is downloaded yet"
    file = fetch()
    assert file.read_bytes() == CONTENT
    assert file.is_relative_to(models_folder())
    assert own_files() == [file]
    assert model_string(file) == model_string(row) == f"builtin/{NAME}"


def test_files_of_the_same_name_do_not_meet(hub: RoutedServer, home: Path) -> None:
    hub.routes["GET /api/models/other/Tiny-GGUF/tree/main/deep"] = as_json([listed("deep/tiny-q4_k_m.gguf")])
    hub.routes["GET /other/Tiny-GGUF/resolve/main/deep/tiny-q4_k_m.gguf"] = file_route()
    assert fetch() != fetch("hf:other/Tiny-GGUF/deep/tiny-q4_k_m.gguf")


def test_other_content_than_stated_is_refused(hub: RoutedServer, home: Path) -> None:
    hub.routes[TREE] = as_json([listed(checksum=hashlib.sha256(b"another").hexdigest())])
    with pytest.raises(DownloadError, match="SHA-256 differs"):
        fetch()
    with pytest.raises(WeightsMissingError):
        file_of(NAME)


def test_a_download_that_broke_off_resumes(hub: RoutedServer, home: Path) -> None:
    hub.routes[FILE] = file_route(breaks_after=iter([1000, 500_000]))
    assert fetch().read_bytes() == CONTENT
    assert [asked.headers.get("range") for asked in hub.asked[1:]] == [None, "bytes=1000-", "bytes=501000-"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            as_json({"error": "Repository not found"}, 404),
            r"no public file tiny-q4_k_m.gguf in someone/Tiny-GGUF \(it answers 404\)",
        ),
        (as_json({"error": "Access is restricted"}, 401), "it answers 401"),
        (as_json([listed("other.gguf")]), "no public file tiny-q4_k_m.gguf .*GGUF files there: other.gguf"),
        (as_json([listed(lfs=None)]), "states no size and SHA-256"),
        (as_json([listed(checksum="abc")]), "states no size and SHA-256"),
        (as_json({"models": []}), "Can't list the files"),
        (Answer(200, [b"<html>"]), "Can't list the files"),
        (Answer(200, [BREAK]), "Can't list the files"),
    ],
)
def test_the_error_says_what_is_wrong(hub: RoutedServer, home: Path, answer: Answer, said: str) -> None:
    hub.routes[TREE] = answer
    with pytest.raises(DownloadError, match=said):
        from_hub(NAME)


@pytest.mark.parametrize(
    "name", ["hf:someone/x.gguf", "hf:a/b/../../c.gguf", "hf:a/b/.x.gguf", "hf:a/b/c.bin", "hf:/a/b.gguf"]
)
def test_only_names_of_gguf_files_are_accepted(hub: RoutedServer, name: str) -> None:
    for ask in (file_of, from_hub):
        with pytest.raises(WeightsMissingError, match="OWNER/REPO/FILE"):
            ask(name)
    assert hub.asked == []


def program(*arguments: str) -> list[str]:
    return [sys.executable, "-c", PROGRAM, *arguments]


def test_at_the_terminal_it_is_fetched_after_a_yes(hub: RoutedServer, home: Path) -> None:
    person = Person(program("--model", f"builtin/{NAME}"))
    person.answers("Download tiny-q4_k_m.gguf (0.0 GB)? (y/n)", "n")
    person.sees("Not downloaded.")
    assert person.ends() == 1
    assert hub.paths() == [TREE]
    person = Person(program("--model", f"builtin/{NAME}"))
    person.answers("Download tiny-q4_k_m.gguf", "y")
    person.sees("Loading tiny-q4_k_m.gguf")  # which is no model
    assert person.ends() != 0
    assert file_of(NAME).read_bytes() == CONTENT


def test_the_list_of_models_takes_its_name_too(hub: RoutedServer, home: Path) -> None:
    person = Person(program("--local"))
    person.sees("Your own GGUF file, or one from Hugging Face")
    person.types("\x1b[F" + ENTER)
    person.answers("Path of the GGUF file:", NAME)
    person.answers("Download tiny-q4_k_m.gguf", "y")
    person.sees("Loading tiny-q4_k_m.gguf")
    person.types("\x03")
    person.ends()


@pytest.mark.parametrize("more", [["--offline"], []])
def test_without_a_yes_or_the_network_nothing_is_fetched(hub: RoutedServer, home: Path, more: list[str]) -> None:
    argv = program("--model", f"builtin/{NAME}", *more, "Hello")
    done = subprocess.run(argv, env=os.environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert done.returncode == 3
    assert "is not on this machine yet" in done.stderr
    assert hub.asked == []
