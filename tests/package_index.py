"""A package index on loopback for pip and uv, which can make a download wait."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from routed_server import Answer, Asked, RoutedServer


class PackageIndex:
    """The wheels of a folder; downloads wait while `held` is set."""

    def __init__(self, folder: Path, server: RoutedServer) -> None:
        self.folder, self._server = folder, server
        self.asked, self._released = threading.Event(), threading.Event()
        self._released.set()

    @property
    def address(self) -> str:
        return f"{self._server.address}/"

    def hold(self) -> None:
        """Have downloads wait until `release`."""
        self._released.clear()

    def release(self) -> None:
        self._released.set()

    def list(self, asked: Asked) -> Answer:
        wheels = sorted(self.folder.glob("*.whl"))
        for wheel in wheels:
            self._server.routes[f"GET /{wheel.name}"] = self.download
        links = "".join(f'<a href="/{wheel.name}">{wheel.name}</a>\n' for wheel in wheels)
        page = f"<!DOCTYPE html><html><body>{links}</body></html>"
        return Answer(200, [page.encode()], {"Content-Type": "text/html"})

    def download(self, asked: Asked) -> Answer:
        self.asked.set()
        self._released.wait()
        return Answer(200, [(self.folder / asked.path.lstrip("/")).read_bytes()])


@contextmanager
def package_index(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PackageIndex]:
    """Have pip and uv use the wheels of a folder instead of the network."""
    folder.mkdir(exist_ok=True)
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    with RoutedServer({}) as server:
        index = PackageIndex(folder, server)
        server.routes["GET /"] = index.list
        for name, value in {"NO_INDEX": "1", "FIND_LINKS": index.address}.items():
            monkeypatch.setenv(f"PIP_{name}", value)
            monkeypatch.setenv(f"UV_{name}", value)
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        try:
            yield index
        finally:
            index.release()
