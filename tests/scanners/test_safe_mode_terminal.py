"""Safe mode at the terminal."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from interpreter.frontends.terminal.approval import QUESTION, SCAN_QUESTION
from model_server import ModelServer, text, tool_call
from terminal.person import CTRL_C, someone

pytestmark = pytest.mark.usefixtures("no_strays")
DANGEROUS = "import subprocess\nword = 'it'\n_ = subprocess.run('echo ' + word + ' ran', shell=True)"
FINDING = "line 3, high: subprocess call with shell=True"
RAN = "it ran"


def messages_sent(server: ModelServer) -> list[str]:
    return [str(message["content"]) for message in server.requests[-1].messages]


def test_high_severity_findings_ask_despite_y_and_reach_the_model() -> None:
    replies = [tool_call("python", DANGEROUS), text("Another way, then.")]
    with ModelServer(replies) as server, someone("-y", "--safe_mode", "auto", server=server, columns=120) as person:
        person.says("run")
        person.sees(FINDING)
        person.answers(QUESTION, "n")
        person.says("so?")
        person.sees("Another way, then.")
        assert RAN not in person.rows
        [found] = [words for words in messages_sent(server) if "A scan of this code found" in words]
        assert FINDING in found
        assert "I have declined to run this code." in messages_sent(server)


@pytest.mark.full
def test_dangerous_code_needs_a_yes_and_clean_code_runs_directly() -> None:
    replies = [tool_call("python", DANGEROUS), tool_call("python", "print('all' + ' clean')"), text("Done.")]
    with ModelServer(replies) as server, someone("-y", "--safe_mode", "auto", server=server, columns=120) as person:
        person.says("run")
        person.answers(QUESTION, "y")
        person.sees("Done.")
        assert RAN in person.rows and "all clean" in person.rows
        assert person.screen.count(QUESTION) == 1
        assert person.screen.count("is not installed") + person.screen.count("are not installed") <= 1


def test_ask_mode_offers_a_scan_first() -> None:
    replies = [tool_call("python", DANGEROUS), tool_call("python", DANGEROUS), text("Done.")]
    with ModelServer(replies) as server, someone("--safe_mode", "ask", server=server, columns=120) as person:
        person.says("run")
        person.answers(SCAN_QUESTION, "y")
        person.sees(FINDING)
        person.answers(QUESTION, "n once more")
        person.answers(SCAN_QUESTION, "n", times=2)
        person.answers(QUESTION, "y", times=2)
        person.sees("Done.")
        assert person.screen.count(FINDING) == 1 and person.rows.count(RAN) == 1


@pytest.mark.full
def test_answering_s_scans_the_block() -> None:
    with ModelServer([tool_call("python", DANGEROUS)]) as server, someone(server=server, columns=120) as person:
        person.says("run")
        person.answers(QUESTION, "s")
        person.sees(FINDING)
        person.answers(QUESTION, "n", times=2)
        person.at_prompt()
        assert RAN not in person.rows


@pytest.mark.full
@pytest.mark.skipif(
    shutil.which("semgrep", path=os.path.dirname(sys.executable)) is not None, reason="the real semgrep comes first"
)
def test_ctrl_c_ends_a_scan(tmp_path: Path) -> None:
    slow = tmp_path / "bin" / "semgrep"
    slow.parent.mkdir()
    slow.write_text(f"#!{sys.executable}\nimport threading\nthreading.Event().wait()\n")
    slow.chmod(0o755)
    env = {"PATH": f"{slow.parent}:/usr/bin:/bin"}
    replies = [tool_call("javascript", "console.log('it' + ' ran')"), text("Fine.")]
    with ModelServer(replies) as server, someone("-y", "--safe_mode", "auto", server=server, env=env) as person:
        person.says("run")
        person.sees("scanning")
        person.types(CTRL_C)
        person.says("and now?")
        person.sees("Fine.")
        assert RAN not in person.rows
        assert person.leaves() == 0


@pytest.mark.full
def test_rerun_scans_blocks_and_asks_again() -> None:
    replies = [tool_call("python", DANGEROUS), text("Done.")]
    with ModelServer(replies) as server, someone("-y", "--safe_mode", "auto", server=server, columns=120) as person:
        person.says("run")
        person.answers(QUESTION, "y")
        person.sees("Done.")
        person.says("%rerun")
        person.sees(FINDING, times=2)
        person.answers(QUESTION, "n", times=2)
        person.sees("0 of 1 blocks were run again.")
        assert person.rows.count(RAN) == 1
        assert person.leaves() == 0
