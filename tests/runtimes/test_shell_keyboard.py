"""Shell blocks that ask for input: the user types answers, and without a keyboard the input ends at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from shell_runtimes import SHELLS, ShellRuntime, bash, shell
from waiting import is_running

__all__ = ["bash", "shell"]

GETPASS = "python3 -c 'import getpass; print(len(getpass.getpass(\"Secret: \")))'"


@pytest.fixture(scope="module", params=SHELLS)
def typed(request: pytest.FixtureRequest) -> Iterator[ShellRuntime]:
    """A session with a keyboard."""
    session = ShellRuntime(request.param, keyboard=True)
    yield session
    session.terminate()


class Typist:
    """Types each answer when its question has appeared."""

    def __init__(self, session: ShellRuntime, *answers: tuple[str, str]) -> None:
        self.runtime, self.answers = session, list(answers)
        self.hidden: list[bool] = []

    def __call__(self, text: str) -> None:
        while self.answers and self.answers[0][0] in text:
            _, keys = self.answers.pop(0)
            self.hidden.append(self.runtime.echo_off())
            self.runtime.send_keys(keys.encode())


def ask(session: ShellRuntime, code: str, *answers: tuple[str, str]) -> tuple[str, list[bool]]:
    typist = Typist(session, *answers)
    return session.do(code, typist).text, typist.hidden


def test_read_gets_typed_input(typed: ShellRuntime) -> None:
    text, hidden = ask(typed, "printf 'Name: '; read name; echo hello $name", ("Name: ", "Ada\n"))
    assert (text, hidden) == ("Name: Ada\nhello Ada\n", [False])


def test_several_questions(typed: ShellRuntime) -> None:
    code = 'for n in 1 2 3; do printf "$n? "; read a; echo "<$a>"; done'
    text, _ = ask(typed, code, ("1? ", "one\n"), ("2? ", "two\n"), ("3? ", "three\r"))
    assert text == "1? one\n<one>\n2? two\n<two>\n3? three\n<three>\n"


HIDE = "stty -echo; printf 'Secret: '; read word; stty echo; echo; echo ${#word}"


@pytest.mark.parametrize("code", [HIDE, GETPASS])
def test_passwords_are_not_echoed(typed: ShellRuntime, code: str) -> None:
    text, hidden = ask(typed, code, ("Secret: ", "hunter2\n"))
    assert "hunter2" not in text
    assert text.split()[-1] == "7"
    assert hidden == [True]
    assert not typed.echo_off()


def test_blocks_have_a_real_terminal(typed: ShellRuntime) -> None:
    text = typed.do("[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo yes; echo from tty > /dev/tty").text
    assert sorted(text.splitlines()) == ["from tty", "yes"]


def test_end_of_file_can_be_typed(typed: ShellRuntime) -> None:
    text, _ = ask(typed, "echo ready; cat; echo end", ("ready", "line\n\x04"))
    assert text == "ready\nline\nline\nend\n"


def test_ctrl_c_can_be_typed(typed: ShellRuntime) -> None:
    typist = Typist(typed, ("ready", "\x03"))
    ran = typed.do("word=kept; sh -c 'echo ready; exec sleep 1000'; echo not reached", typist)
    assert "not reached" not in ran.text and ran.ended == "interrupted"
    assert typed.do("echo $word").text == "kept\n"


def test_an_interrupt_ends_a_question(typed: ShellRuntime) -> None:
    for code in ("read word", GETPASS, "select x in a b; do :; done"):
        ran = typed.stop_at("ready", f"echo ready; {code}; echo not reached")
        assert "not reached" not in ran.text and ran.ended == "interrupted"
    text, hidden = ask(typed, "printf '? '; read a; echo $a", ("? ", "fine\n"))
    assert (text, hidden) == ("? fine\nfine\n", [False])


def test_terminal_modes_and_keys_do_not_leak_into_the_next_block(typed: ShellRuntime) -> None:
    ask(typed, "echo ready; stty raw -echo; sleep 0.2", ("ready", "left over\n"))
    text, hidden = ask(typed, "printf '? '; read a; echo $a", ("? ", "own\n"))
    assert (text, hidden) == ("? own\nown\n", [False])


def test_ctrl_z_does_not_suspend_a_program(typed: ShellRuntime) -> None:
    text, _ = ask(typed, "echo ready; cat", ("ready", "\x1ax\n\x04"))
    assert text.endswith("\x1ax\n")


def test_jobs_and_keyboard_survive_the_end_of_a_shell(typed: ShellRuntime) -> None:
    process = psutil.Process(int(typed.do("sleep 1000 & echo $!").text))
    typed.do("exit 3")
    typed.do("kill -9 $$")
    assert is_running(process)
    process.kill()
    text, _ = ask(typed, "printf '? '; read a < /dev/tty; echo $a", ("? ", "there\n"))
    assert text == "? there\nthere\n"


def test_input_ends_at_once_without_a_keyboard(shell: ShellRuntime) -> None:
    ran = shell.do(f"read word; echo read: $?; {GETPASS} 2>&1 | tail -1; cat /dev/tty; tty; [ -t 0 ] || echo none")
    lines = ran.text.splitlines()
    assert lines[0] == "read: 1" and "EOFError" in lines[1]
    assert "/dev/tty" in lines[2] and lines[3:] == ["not a tty", "none"]
    assert not shell.echo_off()
    shell.send_keys(b"goes nowhere\n")


def test_the_keyboard_can_be_attached_and_detached(bash: ShellRuntime) -> None:
    bash.do("word=kept; sleep 1000 & job=$!")
    for _ in range(3):
        bash.context.keyboard = True
        text, _ = ask(bash, "printf '? '; read a </dev/tty; echo $a", ("? ", "here\n"))
        assert text == "? here\nhere\n"
        bash.context.keyboard = False
        assert bash.do("read a; echo $?; : < /dev/tty").text.startswith("1\n")
        assert bash.do("echo $word; kill -0 $job && echo job").text == "kept\njob\n"


def test_the_terminal_size_is_updated(bash: ShellRuntime, tmp_path: Path) -> None:
    bash.context.keyboard = True
    for size in ((100, 30), (60, 20)):
        bash.context.size = size
        assert bash.do("stty size").text == f"{size[1]} {size[0]}\n"
