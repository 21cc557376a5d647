"""Runtimes in a container, with real Podman and an image made from the system's Python."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interpreter import OpenInterpreter
from interpreter.sandbox import container

from .loopback_server import QuietHandler, serving

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("no_strays")]
IMAGE = "localhost/interpreter-test"
PYTHON, BASH = "/usr/bin/python3", "/bin/bash"
EXCLUDED_MODULES = ("test", "idlelib", "ensurepip", "lib2to3", "pydoc_data", "tkinter", "config-*", "__pycache__")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Podman with its own store that holds the image; skipped where it can't run a container."""
    podman, runtime = shutil.which("podman"), shutil.which("runc") or shutil.which("crun")
    if podman is None or runtime is None or not os.path.exists(PYTHON):
        pytest.skip("Podman, a container runtime or the system's Python is missing")
    place = tmp_path_factory.mktemp("podman")
    (place / "storage.conf").write_text(f'[storage]\ndriver="vfs"\ngraphroot="{place}/graph"\nrunroot="{place}/run"\n')
    limits = 'default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]'
    (place / "containers.conf").write_text(
        f'[containers]\n{limits}\n[engine]\nruntime="{runtime}"\ncgroup_manager="cgroupfs"\n'
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("CONTAINERS_STORAGE_CONF", str(place / "storage.conf"))
        patched.setenv("CONTAINERS_CONF", str(place / "containers.conf"))
        container.trouble_with.cache_clear()
        trouble = build_image(podman, place)
        if trouble:
            pytest.skip(f"can't run a container here: {trouble}")
        yield podman
        subprocess.run([podman, "rmi", "--force", IMAGE], capture_output=True, timeout=60)
    container.trouble_with.cache_clear()


def build_image(podman: str, place: Path) -> str:
    """Build the image and try it; return what is wrong, or an empty string."""
    root = place / "root"
    for folder in ("usr/bin", "usr/lib", "usr/lib64", "tmp", "proc", "dev", "sys", "etc", "root", "run", "var"):
        (root / folder).mkdir(parents=True)
    for name in ("bin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    library = Path(subprocess.check_output([PYTHON, "-c", "import os; print(os.__file__)"], text=True).strip()).parent
    shutil.copytree(
        library, root / str(library).lstrip("/"), ignore=shutil.ignore_patterns(*EXCLUDED_MODULES), dirs_exist_ok=True
    )
    modules = (root / str(library).lstrip("/")).glob("lib-dynload/*.so")
    for program in (PYTHON, BASH, "/bin/cat", "/bin/ls", *map(str, modules)):
        copy_with_libraries(program, root)
    (root / "usr/bin/sh").symlink_to("bash")
    (root / "usr/bin/python3").exists() or (root / "usr/bin/python3").symlink_to(os.path.basename(PYTHON))
    subprocess.run(["tar", "-C", root, "-cf", place / "root.tar", "."], check=True, timeout=60)
    subprocess.run([podman, "import", place / "root.tar", IMAGE], capture_output=True, timeout=120)
    tried = subprocess.run(
        [podman, "run", "--rm", "--network", "none", IMAGE, "python3", "-c", "import ctypes, ssl; print(6 * 7)"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    return "" if tried.stdout == "42\n" else tried.stderr.strip()[-300:]


def copy_with_libraries(program: str, root: Path) -> None:
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, timeout=60).stdout.split()
    for path in [program, *(word for word in listed if word.startswith("/"))]:
        target = root / path.removeprefix(str(root)).lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            shutil.copy2(os.path.realpath(path), target)


@pytest.fixture
def inside(engine: str) -> Iterator[OpenInterpreter]:
    interpreter = OpenInterpreter(sandbox=f"container:{IMAGE}")
    yield interpreter
    interpreter.reset()


def output(interpreter: OpenInterpreter, code: str, language: str = "python") -> str:
    return "".join(str(message["content"]) for message in interpreter.computer.run(language, code))


def test_code_in_a_container_writes_only_to_the_workspace(inside: OpenInterpreter, home: Path) -> None:
    (home / "secret").write_text("x")
    assert "42" in output(inside, "x = 41; x += 1; open('made', 'w').close(); print(x)")
    assert Path("made").exists()
    assert "False" in output(inside, f"import os; print(os.path.exists({str(home / 'secret')!r}))")
    assert "Blocked by the sandbox: writing /etc/made" in output(inside, "open('/etc/made', 'w')")
    assert "Only this block is lost" in output(inside, "os.kill(os.getpid(), 9)")
    assert "42" in output(inside, "print(x)")
    assert "of the shell" in output(inside, "kept='of the shell'; echo $kept", "shell")


def test_listed_hosts_are_reached_through_the_proxy(inside: OpenInterpreter) -> None:
    class Shop(QuietHandler):
        def do_GET(self) -> None:
            self.answer(b"open")

    with serving(Shop) as port:
        inside.sandbox_hosts = [f"shop.example:{port}"]
        inside.computer.runtimes.apply_sandbox()
        proxy: Any = inside.computer.context.containment.proxy  # type: ignore[union-attr]
        proxy._resolve, proxy._allow_private = lambda *_: ["127.0.0.1"], True
        asking = "import urllib.request as u; print('It is', u.urlopen('http://{host}:{port}').read())"
        assert "It is b'open'" in output(inside, asking.format(host="shop.example", port=port))
        assert "Blocked by the sandbox: connecting to other" in output(
            inside, asking.format(host="other.example", port=port)
        )


def test_a_missing_image_is_reported(engine: str) -> None:
    interpreter = OpenInterpreter(sandbox="container:localhost/no-such-image")
    assert "no-such-image" in output(interpreter, "print(6 * 7)")
    interpreter.reset()
