"""Fish blocks: each runs in its own process and continues with the state of the previous one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from interpreter.languages.fish import Fish
from interpreter.runtimes.launch import RuntimeContext

pytestmark = pytest.mark.needs("fish")


class Session:
    def __init__(self) -> None:
        self.context = RuntimeContext()
        self.fish = Fish(self)

    def do(self, code: str) -> str:
        chunks = list(self.fish.run(code))
        self.exit_code = chunks[-1]["exit_code"]
        return "".join(str(chunk["content"]) for chunk in chunks if chunk.get("format") == "output")


@pytest.fixture
def session(no_strays: None) -> Iterator[Session]:
    made = Session()
    yield made
    made.fish.terminate()


def test_state_is_kept_between_blocks(session: Session, tmp_path: Path) -> None:
    Path("library.fish").write_text("function from_a_file; echo read; end\n")
    session.do(
        "set words one 'two words' \"it's\" \\n'line'; set -g empty; function greet; echo hi $argv; end\n"
        f"alias say 'echo said'; source library.fish; cd {tmp_path}; umask 027; exit 3"
    )
    assert session.exit_code == 3
    assert session.context.cwd == str(tmp_path)
    shown = session.do("count $words; echo $words[2]; count $empty; greet you; say it; from_a_file; pwd; umask")
    assert shown == f"4\ntwo words\n0\nhi you\nsaid it\nread\n{tmp_path}\n0027\n"
    session.do("set -e words; functions -e greet")
    assert session.do("count $words; functions -q greet; or echo gone") == "0\ngone\n"


def test_exports_are_shared_with_other_languages(session: Session) -> None:
    session.do("set -gx WORD one; set -gx LIST a b; set -gx LATER x; set hidden 1")
    assert session.context.exported == {"WORD": "one", "LIST": "a b", "LATER": "x"}
    assert session.do("count $LIST; set -e LATER; echo $WORD") == "2\none\n"
    assert session.context.exported["LATER"] is None
    session.context.exported.update(WORD="two", LIST="other")
    assert session.do("echo $WORD; count $LIST; env | string match 'LATER=*'") == "two\n1\n"


def test_background_processes_keep_running(session: Session, tmp_path: Path) -> None:
    go = tmp_path / "go"
    session.do(f"sh -c 'while [ ! -e {go} ]; do sleep 0.05; done; echo done >{tmp_path}/over' &")
    go.touch()
    assert session.do(f"while not test -e {tmp_path}/over; sleep 0.05; end; echo over") == "over\n"


def test_a_killed_block_loses_only_its_changes(session: Session) -> None:
    session.do("set x kept")
    session.do("set x lost; kill -9 $fish_pid")
    assert session.do("echo $x") == "kept\n"
