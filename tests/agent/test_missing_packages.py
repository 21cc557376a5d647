"""A package that a block imports and that is missing: what is installed, by whom, and what the model reads."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conversation import Chatting
from interpreter.runtimes.missing_packages import first_imports, known_packages, named_packages, only_installs
from interpreter.session import APPROVE, REFUSE, Answer
from model_replies import text, tool_call
from package_index import package_index
from tiny_package import write_wheel

PLAIN = "import squarify\nprint('it is', squarify.answer)"  # a well-known package; this one is not the real one


@pytest.fixture(autouse=True)
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip finds packages in, instead of on the network."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    folder = tmp_path / "index"
    folder.mkdir()
    for name, value in {"CONFIG_FILE": os.devnull, "NO_INDEX": "1", "FIND_LINKS": str(folder)}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    write_wheel(folder, "squarify")
    write_wheel(folder, "wordcloud")
    write_wheel(folder, "tiny_thing")
    return folder


def outputs(interpreter: Any) -> list[str]:
    return [message["content"] for message in interpreter.messages if message["role"] == "computer"]


def installations(interpreter: Any) -> list[dict[str, Any]]:
    """The installations that were actions of the session."""
    actions = [event.data for event in interpreter.session.events() if event.kind == "action"]
    return [data for data in actions if data["kind"] == "install" and data["state"] == "begun"]


def run(chatting: Chatting, code: str, *more: str, **settings: Any) -> tuple[Any, Any]:
    """A chat in which the model writes these blocks, in auto mode."""
    replies = [tool_call("python", each) for each in (code, *more)]
    interpreter, server = chatting(*replies, text("Done then."), **{"auto_run": True, **settings})
    interpreter.chat("go", display=False)
    interpreter.session.log.close()
    return interpreter, server


class TestWellKnownPackages:
    def test_one_is_installed_before_the_block_runs(self, chatting: Chatting) -> None:
        interpreter, server = run(chatting, f"print('begun')\n{PLAIN}")
        assert outputs(interpreter) == ["begun\nit is 42\n"]
        assert [data["packages"] for data in installations(interpreter)] == [["squarify"]]
        assert len(server.requests) == 2

    def test_a_script_without_y_installs_it_if_it_runs_the_block(self, chatting: Chatting) -> None:
        interpreter, _ = chatting(tool_call("python", PLAIN), text("Done then."))
        list(interpreter.chat("go", display=False, stream=True))
        assert outputs(interpreter) == ["it is 42\n"]

    def test_the_journal_has_the_installation(self, chatting: Chatting) -> None:
        interpreter, _ = run(chatting, PLAIN)
        entries = map(json.loads, (interpreter.journal.path / "journal.jsonl").read_text("utf-8").splitlines())
        assert [entry["packages"] for entry in entries if entry.get("kind") == "install" and "packages" in entry] == [
            ["squarify"]
        ]

    def test_never_means_never(self, chatting: Chatting) -> None:
        interpreter, _ = chatting(tool_call("python", PLAIN), text("I see."), auto_run=True)
        interpreter.computer.install_missing = "never"
        interpreter.chat("go", display=False)
        assert "install it with: %pip install squarify" in outputs(interpreter)[0]

    def test_known_asks_no_one(self, chatting: Chatting) -> None:
        interpreter, _ = chatting(tool_call("python", PLAIN), text("Done then."))
        interpreter.computer.install_missing = "known"
        with interpreter.session.questions.answerable(("offer", "block"), lambda question: Answer(APPROVE)):
            list(interpreter.chat("go", display=False, stream=True))
        assert outputs(interpreter) == ["it is 42\n"]

    def test_only_wheels_are_installed(self, chatting: Chatting, index: Path) -> None:
        (index / "squarify-1.0-py3-none-any.whl").unlink()
        (index / "squarify-1.0.tar.gz").write_bytes(b"not even a package")
        interpreter, _ = run(chatting, PLAIN)
        assert outputs(interpreter)[0].endswith("Not installed: squarify.\n")

    def test_offline_installs_nothing(self, chatting: Chatting) -> None:
        interpreter, _ = chatting(tool_call("python", PLAIN), text("I see."), auto_run=True)
        interpreter.computer.offline = True
        interpreter.chat("go", display=False)
        assert "Offline mode is on" in outputs(interpreter)[0]

    def test_a_rule_can_forbid_it(self, chatting: Chatting, home: Path) -> None:
        rules = "rules:\n  - decision: deny\n    command: pip install *\n    reason: Ask the admins.\n"
        (Path.cwd() / ".interpreter").mkdir()
        config = home / ".config" / "open-interpreter"
        config.mkdir(parents=True, exist_ok=True)
        (config / "policy.yaml").write_text(rules)
        interpreter, _ = run(chatting, PLAIN)
        assert "squarify can't be installed: Ask the admins." in outputs(interpreter)[0]
        assert not installations(interpreter)

    def test_a_users_own_environment_is_left_alone(
        self, chatting: Chatting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import subprocess
        import sys

        subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
        monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "venv"))
        interpreter, _ = run(chatting, PLAIN)
        assert "install it with: %pip install squarify" in outputs(interpreter)[0]

    def test_the_users_own_blocks_install_nothing_by_themselves(self, chatting: Chatting) -> None:
        interpreter, _ = chatting(auto_run=True)
        chunks = interpreter.computer.run("python", PLAIN)
        assert "install it with: %pip install squarify" in str(chunks)

    @pytest.mark.needs("bwrap")
    def test_a_sandbox_reaches_only_its_hosts(self, chatting: Chatting, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("PIP_NO_INDEX")
        monkeypatch.delenv("PIP_FIND_LINKS")
        monkeypatch.setenv("PIP_INDEX_URL", "https://index.example/simple")
        interpreter, _ = run(chatting, PLAIN, sandbox="workspace")
        assert "Blocked by the sandbox: connecting to index.example." in outputs(interpreter)[0]
        assert outputs(interpreter)[0].endswith("Not installed: squarify.\n")

    @pytest.mark.needs("bwrap")
    def test_plan_mode_installs_nothing(self, chatting: Chatting) -> None:
        interpreter, _ = run(chatting, PLAIN, auto_run=False, mode="plan")
        assert "squarify can't be installed: plan mode doesn't allow changes" in outputs(interpreter)[0]
        assert not installations(interpreter)

    def test_ctrl_c_ends_the_installation_and_the_block_does_not_run(
        self, chatting: Chatting, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The index accepts connections and never answers."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            monkeypatch.delenv("PIP_NO_INDEX")
            monkeypatch.delenv("PIP_FIND_LINKS")
            monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.getsockname()[1]}/simple")
            monkeypatch.setenv("no_proxy", "127.0.0.1")
            interpreter, _ = chatting(tool_call("python", f"print('begun')\n{PLAIN}"), auto_run=True)

            def cancel() -> None:
                with server.accept()[0] as connection:
                    connection.recv(1)
                    interpreter.cancel()
                    connection.recv(100_000)

            thread = threading.Thread(target=cancel)
            thread.start()
            interpreter.chat("go", display=False)
            thread.join()
        assert "begun" not in str(outputs(interpreter))


@pytest.mark.needs("bwrap")
class TestInASandbox:
    """With an index that the sandbox doesn't reach."""

    @pytest.fixture
    def address(self, monkeypatch: pytest.MonkeyPatch, index: Path) -> Iterator[str]:
        with package_index(index, monkeypatch) as server:
            host = f"index.example:{server.address.rsplit(':', 1)[1].rstrip('/')}"
            for name, value in {"INDEX_URL": f"http://{host}/simple", "FIND_LINKS": f"http://{host}/"}.items():
                monkeypatch.setenv(f"PIP_{name}", value)
            monkeypatch.setenv("PIP_TRUSTED_HOST", host)
            yield host

    @pytest.mark.parametrize("choice", [APPROVE, REFUSE])
    def test_one_question_names_what_the_installer_reaches(self, chatting: Chatting, address: str, choice: str) -> None:
        reaching = f"import socket; socket.create_connection({tuple(address.split(':'))!r})"
        interpreter, _ = chatting(
            tool_call("python", PLAIN), tool_call("python", reaching), text("Done then."), mode="auto-in-sandbox"
        )
        interpreter.sandbox = "workspace"
        interpreter.computer.runtimes.apply_sandbox()
        proxy: Any = interpreter.computer.context.containment.proxy
        proxy._resolve, proxy._allow_private = lambda *_: ["127.0.0.1"], True
        asked = []

        def answer(question: Any) -> Answer:
            asked.append(question.subject.text)
            return Answer(choice)

        with interpreter.session.questions.answerable(("offer", "block"), answer):
            list(interpreter.chat("go", display=False, stream=True))
        assert asked == [
            f"During the installation, the sandbox can reach {address}.\nInstall squarify and run the block?"
        ]
        assert ("it is 42" in outputs(interpreter)[0]) == (choice == APPROVE)
        assert "Blocked by the sandbox" in outputs(interpreter)[-1]


class TestOtherPackages:
    def test_an_unknown_name_is_never_installed_without_a_question(self, chatting: Chatting) -> None:
        for setting in ("ask", "known"):
            interpreter, _ = chatting(tool_call("python", "import tiny_thing"), text("I see."), auto_run=True)
            interpreter.computer.install_missing = setting
            interpreter.chat("go", display=False)
            assert "If it is a package, install it with: %pip install tiny_thing" in outputs(interpreter)[0]

    @pytest.mark.parametrize("choice", [APPROVE, REFUSE])
    def test_one_question_for_all(self, chatting: Chatting, choice: str) -> None:
        code = "import squarify, tiny_thing\nprint(squarify.answer + tiny_thing.answer)"
        interpreter, _ = chatting(tool_call("python", code), text("Done then."))
        asked = []

        def answer(question: Any) -> Answer:
            asked.append(getattr(question.subject, "text", ""))
            return Answer(choice if question.kind == "offer" else APPROVE)

        with interpreter.session.questions.answerable(("offer", "block"), answer):
            list(interpreter.chat("go", display=False, stream=True))
        assert asked[1:] == [
            "Check the name, anyone can publish a package: tiny_thing.\nInstall squarify and tiny_thing and run the block?"
        ]
        if choice == APPROVE:
            assert outputs(interpreter) == ["84\n"]
        else:
            assert outputs(interpreter)[0].endswith("The user doesn't want to install squarify and tiny_thing.\n")

    def test_modules_that_are_there_in_another_way_are_not_missing(self, chatting: Chatting) -> None:
        Path("helper").mkdir()
        Path("helper/squarify.py").write_text("answer = 7\n")
        interpreter, _ = run(chatting, "import sys; sys.path.insert(0, 'helper')", PLAIN)
        assert outputs(interpreter)[1] == "it is 7\n"
        assert not installations(interpreter)


class TestInTheMiddle:
    """An import that only runs when it is called."""

    def test_the_block_runs_again_from_its_checkpoint(self, chatting: Chatting) -> None:
        code = "numbers.append(1)\nprint('begun')\ndef late():\n    import wordcloud\n    return wordcloud.answer\nprint(late(), numbers)"
        interpreter, _ = run(chatting, "numbers = []", code)
        assert outputs(interpreter)[1] == "begun\n42 [1]\n"

    def test_what_undo_does_not_cover_does_not_happen_twice(self, chatting: Chatting) -> None:
        code = "open('log', 'a').write('once ')\nprint('begun')\ndef late():\n    import squarify\nlate()\nprint('end')"
        interpreter, _ = run(chatting, code)
        assert Path("log").read_text() == "once "
        assert outputs(interpreter)[0].startswith("begun\n")
        assert "Now installed: squarify. The block stopped at the import" in outputs(interpreter)[0]


class TestInstalledAlready:
    @pytest.mark.parametrize("line", ["%pip install -q psutil", "!pip install psutil", "pip install psutil"])
    def test_the_answer_comes_at_once(self, chatting: Chatting, line: str) -> None:
        interpreter, server = run(chatting, line, "print('it is', 42)")
        assert outputs(interpreter) == ["Already installed: psutil.\n", "it is 42\n"]
        assert len(server.requests) == 3

    def test_it_comes_for_a_shell_block_too(self, chatting: Chatting) -> None:
        replies = [tool_call("shell", "pip install psutil"), tool_call("shell", "echo it is 42"), text("Done then.")]
        interpreter, _ = chatting(*replies, auto_run=True)
        interpreter.chat("go", display=False)
        assert outputs(interpreter) == ["Already installed: psutil.\n", "it is 42\n"]

    def test_a_version_is_pips_to_judge(self) -> None:
        assert named_packages("pip install psutil httpx") == ["psutil", "httpx"]
        for code in (
            "pip install 'psutil>=99'",
            "pip install -U psutil",
            "pip install psutil\nprint(1)",
            "npm install x",
        ):
            assert named_packages(code) == []


def test_first_imports() -> None:
    code = (
        "import numpy as np, os.path\nfrom PIL import Image\n!ls\ntry:\n    import ujson\nexcept ImportError:\n    pass\n"
        "def f():\n    import late\nfrom . import sibling\nopen('own.py', 'w')\nimport own"
    )
    assert first_imports(code) == ["numpy", "os", "PIL"]
    for other in (
        "%pip install x\nimport x",
        "%%bash\nimport x",
        "import sys\nsys.path.append('a')\nimport x",
        "import (",
    ):
        assert first_imports(other) == []


def test_blocks_that_only_install() -> None:
    for language, code in {
        ("python", "%pip install pandas"),
        ("python", "# first\n!pip install -q pandas matplotlib\n"),
        ("python", "import subprocess, sys\nsubprocess.check_call([sys.executable, '-m', 'pip', 'install', 'pandas'])"),
        ("shell", "pip3 install pandas\npython3 -m pip install numpy"),
        ("r", 'install.packages("ggplot2")'),
        ("javascript", "npm install lodash"),
        ("shell", "npm i lodash"),
        ("shell", "uv add pandas"),
        ("shell", "sudo apt-get update && sudo apt-get install -y poppler-utils"),
        ("shell", "conda install -y pandas && pip --quiet install matplotlib"),
    }:
        assert only_installs(language, code), code
    for code in (
        "import pandas",
        "%pip install pandas\nimport pandas",
        "",
        "pip install x && python run.py",
        "pip list",
        "# add it",
        "apt-get update",
        "uv run add.py",
    ):
        assert not only_installs("python", code), code


def test_the_table_has_what_people_import() -> None:
    known = known_packages("pip")
    different = {"cv2": "opencv-python-headless", "PIL": "pillow", "sklearn": "scikit-learn", "yaml": "pyyaml"}
    different |= {"bs4": "beautifulsoup4", "docx": "python-docx"}
    assert different.items() <= known.items()
    same = "pandas numpy matplotlib seaborn scipy statsmodels networkx tabulate openpyxl duckdb requests wordcloud"
    assert all(known[name] == name for name in same.split())
    assert 1500 < len(known) < 3500
