"""pip and npm install through the proxy, but only from listed registries."""

from __future__ import annotations

import base64
import functools
import hashlib
import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interpreter.sandbox.proxy import Proxy
from sandbox.loopback_server import QuietHandler, serving
from tiny_package import wheel

WHEEL = "tiny_thing-1.0-py3-none-any.whl"


@functools.cache  # a second archive would have another timestamp
def package() -> bytes:
    made = io.BytesIO()
    files = {"package.json": '{"name":"tiny-thing","version":"1.0.0","main":"i.js"}', "i.js": "module.exports = 42;\n"}
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return made.getvalue()


class Registry(QuietHandler):
    def do_GET(self) -> None:
        host, body = self.headers["Host"], b""
        if self.path == "/simple/tiny-thing/":
            body = f'<a href="/{WHEEL}">{WHEEL}</a>'.encode()
        elif self.path == f"/{WHEEL}":
            body = wheel()
        elif self.path == "/tiny-thing":
            digest = base64.b64encode(hashlib.sha512(package()).digest()).decode()
            dist = {"tarball": f"http://{host}/t.tgz", "integrity": f"sha512-{digest}"}
            version = {"name": "tiny-thing", "version": "1.0.0", "dist": dist}
            body = json.dumps(
                {"name": "tiny-thing", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
            ).encode()
        elif self.path == "/t.tgz":
            body = package()
        self.answer(body, "text/html" if body.startswith(b"<") else "application/json", 200 if body else 404)


@pytest.fixture
def registry() -> Iterator[int]:
    with serving(Registry) as port:
        yield port


def with_registry(contained: Any, port: int, *hosts: str) -> Any:
    return contained(proxy=Proxy(hosts, lambda host, port: ["127.0.0.1"], allow_private=True))


def pip(port: int) -> str:
    return (
        f"for name in ${{!PIP_*}}; do [ $name = PIP_TARGET ] || unset $name; done; PIP_CONFIG_FILE=/dev/null pip install -q "
        f"--disable-pip-version-check --no-input --retries 0 --index-url http://registry.example:{port}/simple "
        f"--trusted-host registry.example tiny-thing"
    )


def test_pip_packages_are_available_in_running_sessions(contained: Any, registry: int) -> None:
    inside = with_registry(contained, registry, f"registry.example:{registry}")
    inside.do("python", "import sys")
    ran = inside.do("shell", pip(registry))
    assert ran.ended == "done", ran.text
    assert inside.do("python", "import tiny_thing; print(tiny_thing.answer)").text.strip() == "42"


@pytest.mark.full
def test_pip_fails_if_the_registry_is_not_listed(contained: Any, registry: int) -> None:
    inside = with_registry(contained, registry, "another.example")
    ran = inside.do("shell", pip(registry))
    assert ran.ended == "error"
    assert f"`needs: host registry.example:{registry}`" in ran.text


@pytest.mark.full
@pytest.mark.needs("npm", "node")
def test_npm_installs_into_the_workspace(contained: Any, registry: int, workspace: Path) -> None:
    inside = with_registry(contained, registry, f"registry.example:{registry}")
    npm = f"npm install --registry http://registry.example:{registry} --no-audit --no-fund --fetch-retries 0 tiny-thing"
    ran = inside.do("shell", npm)
    assert ran.ended == "done", ran.text
    assert inside.do("javascript", "require('tiny-thing')").text.strip() == "42"
    assert (workspace / "node_modules" / "tiny-thing").is_dir()
