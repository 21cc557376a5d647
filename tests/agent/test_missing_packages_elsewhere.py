"""Packages that R and JavaScript blocks load and that are missing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from conversation import Chatting
from interpreter.session import APPROVE, REFUSE, Answer
from model_replies import text, tool_call

PACKAGES = ("left-pad", "tiny-thing")


def outputs(interpreter: Any) -> list[str]:
    return [message["content"] for message in interpreter.messages if message["role"] == "computer"]


def answered(chatting: Chatting, language: str, code: str, choice: str) -> tuple[list[str], list[str]]:
    """What is asked about a block, and the outputs; a person allows the block and gives this answer to the offer."""
    interpreter, _ = chatting(tool_call(language, code), text("Done then."))
    asked: list[str] = []

    def answer(question: Any) -> Answer:
        if question.kind == "offer":
            asked.append(question.subject.text.splitlines()[-1])
        return Answer(choice if question.kind == "offer" else APPROVE)

    with interpreter.session.questions.answerable(("offer", "block"), answer):
        list(interpreter.chat("go", display=False, stream=True))
    return asked, outputs(interpreter)


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An npm that takes the packages of a folder, and runs none of their scripts."""
    packages, programs = tmp_path / "packages", tmp_path / "programs"
    for name in PACKAGES:
        (packages / name).mkdir(parents=True)
        about = {"name": name, "version": "1.0.0", "main": "index.js", "scripts": {"install": "touch ran"}}
        (packages / name / "package.json").write_text(json.dumps(about))
        (packages / name / "index.js").write_text("module.exports = { answer: 42 }\n")
    programs.mkdir()
    script = f'args=$(printf "%s\\n" "$@" | sed -E "s#^({"|".join(PACKAGES)})\\$#{packages}/&#")\nexec {shutil.which("npm")} $args\n'
    (programs / "npm").write_text(f"#!/bin/sh\n{script}")
    (programs / "npm").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    return packages


@pytest.mark.needs("npm")
class TestJavaScript:
    def test_a_missing_package_is_one_question(self, chatting: Chatting, npm: Path) -> None:
        code = "const tiny = require('tiny-thing');\nconsole.log('it is', tiny.answer);"
        asked, printed = answered(chatting, "javascript", code, APPROVE)
        assert asked == ["Install tiny-thing and run the block again?"]
        assert printed == ["it is 42\n"]
        assert not list(npm.rglob("ran"))
        assert not Path("node_modules").exists()

    def test_a_block_of_one_line_runs_again(self, chatting: Chatting, npm: Path) -> None:
        code = "const tiny = require('tiny-thing'); console.log('it is', tiny.answer)"
        assert answered(chatting, "javascript", code, APPROVE)[1] == ["it is 42\n"]

    def test_imports_find_it_too(self, chatting: Chatting, npm: Path) -> None:
        code = "import tiny from 'tiny-thing';\nconsole.log('it is', tiny.answer);"
        assert answered(chatting, "javascript", code, APPROVE)[1] == ["it is 42\n"]

    def test_a_second_one_is_found_too(self, chatting: Chatting, npm: Path) -> None:
        codes = [f"const {{ answer }} = require('{name}')\nconsole.log('it is', answer)" for name in PACKAGES]
        interpreter, _ = chatting(*(tool_call("javascript", code) for code in codes), text("Done then."))
        with interpreter.session.questions.answerable(("offer", "block"), lambda question: Answer(APPROVE)):
            list(interpreter.chat("go", display=False, stream=True))
        assert outputs(interpreter) == ["it is 42\n", "it is 42\n"]

    def test_a_no_keeps_the_error(self, chatting: Chatting, npm: Path) -> None:
        _, printed = answered(chatting, "javascript", "require('tiny-thing')", REFUSE)
        assert "Cannot find module 'tiny-thing'" in printed[0]
        assert printed[0].endswith("The user doesn't want to install tiny-thing.\n")

    def test_an_unknown_package_is_never_installed_without_a_question(self, chatting: Chatting, npm: Path) -> None:
        interpreter, _ = chatting(tool_call("javascript", "require('tiny-thing')"), text("I see."), auto_run=True)
        interpreter.chat("go", display=False)
        assert "There is no package 'tiny-thing' for JavaScript here." in outputs(interpreter)[0]


@pytest.fixture
def cran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """R packages in a folder, instead of on the network."""
    source, folder = tmp_path / "tinything", tmp_path / "cran" / "src" / "contrib"
    (source / "R").mkdir(parents=True)
    folder.mkdir(parents=True)
    (source / "DESCRIPTION").write_text("Package: tinything\nVersion: 1.0\nTitle: T\nLicense: MIT\n")
    (source / "NAMESPACE").write_text("export(answer)\n")
    (source / "R" / "answer.R").write_text("answer <- 42\n")
    subprocess.run(["R", "CMD", "build", str(source)], cwd=folder, check=True, capture_output=True)
    write = f"tools::write_PACKAGES({json.dumps(str(folder))}, type = 'source')"
    subprocess.run(["Rscript", "-e", write], check=True, capture_output=True)
    profile = tmp_path / "Rprofile"
    profile.write_text(f"options(repos = c(CRAN = {json.dumps(f'file://{tmp_path}/cran')}))\n")
    monkeypatch.setenv("R_PROFILE_USER", str(profile))
    return folder


@pytest.mark.needs("Rscript")
class TestR:
    def test_a_missing_package_is_one_question(self, chatting: Chatting, cran: Path) -> None:
        code = "library(tinything)\ncat('it is', answer, '\\n')"
        asked, printed = answered(chatting, "r", code, APPROVE)
        assert asked == ["Install tinything and run the block again?"]
        assert printed == ["it is 42 \n"]
        assert answered(chatting, "r", code, REFUSE) == ([], ["it is 42 \n"])  # the next time, it is installed

    def test_the_reason_of_a_failed_installation_is_shown(self, chatting: Chatting, cran: Path) -> None:
        _, printed = answered(chatting, "r", "library(nosuchthing)", APPROVE)
        assert "‘nosuchthing’ is not available" in printed[-1]

    def test_what_ran_before_it_does_not_run_again(self, chatting: Chatting, cran: Path) -> None:
        code = "cat('begun\\n')\ncat('once ', file = 'log', append = TRUE)\nlibrary(tinything)"
        asked, printed = answered(chatting, "r", code, APPROVE)
        assert asked == ["Install tinything?"]
        assert Path("log").read_text() == "once "
        assert "Now installed: tinything. The block stopped at the import" in printed[-1]
