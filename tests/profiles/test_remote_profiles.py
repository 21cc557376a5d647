"""Profiles from a URL: shown in full and approved by the user, refused without a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from interpreter import OpenInterpreter
from interpreter.errors import ProfileError
from profiles.programs import interpreter
from terminal.person import PROGRAM, Person

Publish = Callable[[str, str], str]


@pytest.fixture
def publish() -> Iterator[Publish]:
    """`publish(path, text)` serves a file on this machine and returns its URL."""
    files: dict[str, str] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = files.get(self.path)
            if text is not None and text.startswith("-> "):
                self.send_response(302)
                self.send_header("Location", text[3:])
                self.end_headers()
                return
            self.send_response(404 if text is None else 200)
            kind = (
                "text/html"
                if self.path.endswith(".html")
                else "application/json"
                if "json" in self.path
                else "text/plain"
            )
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write((text or "").encode())

        def log_message(self, *args: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def put(path: str, text: str) -> str:
        files[path] = text
        return f"http://127.0.0.1:{server.server_port}{path}"

    yield put
    server.shutdown()
    server.server_close()


def start_in_terminal(*arguments: str) -> Person:
    return Person([sys.executable, "-c", PROGRAM, *arguments], columns=220)


def test_a_remote_profile_is_shown_and_needs_approval(publish: Publish) -> None:
    address = publish("/p.yaml", "llm:\n  model: theirs\nauto_run: true\ncustom_instructions: Use $HOME.\n")
    person = start_in_terminal("--profile", address, "--debug-config")
    person.sees("llm.model = 'theirs'")
    person.sees("auto_run = True")
    person.sees("custom_instructions = Use $HOME.")
    person.sees("It reads these environment variables: HOME.")
    person.answers("Load it? (y/n)", "y")
    person.sees(f"profile {address}, line 2")
    assert person.ends() == 0
    person.close()


def test_declining_ends_the_program(publish: Publish) -> None:
    person = start_in_terminal("--profile", publish("/p.yaml", "auto_run: true\n"))
    person.answers("Load it? (y/n)", "n")
    person.sees("was not loaded")
    assert person.ends() == 1
    person.close()


def test_a_remote_python_profile_is_shown_in_full_before_it_runs(publish: Publish, tmp_path: Path) -> None:
    trace = tmp_path / "ran"
    code = f"open({str(trace)!r}, 'w')\n" + "".join(f"x{n} = {n}\n" for n in range(60)) + "print('\\x1b[2J')\x1b[2K\n"
    person = start_in_terminal("--profile", publish("/p.py", code))
    person.sees("is a program")
    person.sees("Load it? (y/n)")
    assert not trace.exists()
    for line in (f"open({str(trace)!r}", "x0 = 0", "x59 = 59"):
        assert line in person.screen
    assert "\x1b[2K" not in person.raw  # no code can hide itself
    person.types("n\r")
    person.ends()
    person.close()
    assert not trace.exists()


def test_a_remote_start_script_is_shown(publish: Publish) -> None:
    person = start_in_terminal("--profile", publish("/p.yaml", "start_script: |\n  import os\n  os.abort()\n"))
    person.sees("os.abort()")
    person.answers("Load it? (y/n)", "")
    assert person.ends() == 1
    person.close()


def test_without_a_terminal_only_trusted_profiles_are_loaded(publish: Publish) -> None:
    address = publish("/p.yaml", "llm.model: theirs\n")
    done = interpreter("-y", "--profile", address, "--debug-config")
    assert (done.returncode, done.stdout) == (1, "")
    assert "--trust_profile" in done.stderr
    done = interpreter("--profile", address, "--trust_profile", "--debug-config")
    assert "'theirs'" in done.stdout


@pytest.mark.parametrize(
    ("path", "text", "words"),
    [
        ("/none.yaml", "", "the server answered 404"),
        ("/page.html", "<html>", "is a web page"),
        ("/p.yaml", "x: " + "y" * 1_100_000, "larger than"),
        ("/p.yaml", "modle: x", "line 1: There is no setting named modle. Did you mean llm.model?"),
        ("/p.yaml", "-> ftp://127.0.0.1/p.yaml", "Can't fetch"),
    ],
)
def test_errors_of_remote_profiles_are_explained(publish: Publish, path: str, text: str, words: str) -> None:
    address = publish(path, text) if text else publish("/other", "")[: -len("/other")] + path
    with pytest.raises(ProfileError, match=words):
        OpenInterpreter().load_profile(address, trust=True)


def test_the_library_loads_only_trusted_remote_profiles(publish: Publish) -> None:
    made = OpenInterpreter()
    address = publish("/json", '{"max_output": 5}')
    with pytest.raises(ProfileError, match="was not approved"):
        made.load_profile(address)
    made.load_profile(address, trust=True)
    assert made.max_output == 5
    made.load_profile(publish("/moved", f"-> {publish('/p.yaml', 'max_output: 6')}"), trust=True)
    assert made.max_output == 6


def test_offline_fetches_no_profile(publish: Publish) -> None:
    with pytest.raises(ProfileError, match="offline"):
        OpenInterpreter(offline=True).load_profile(publish("/p.yaml", "auto_run: true"), trust=True)


@pytest.mark.parametrize("name", ["i.com/x", "https://i.com/x", "www.i.com/x"])
def test_shortcuts_to_the_originals_site_are_refused(name: str) -> None:
    with pytest.raises(ProfileError, match="full URL"):
        OpenInterpreter().load_profile(name, trust=True)
