"""Shell output arrives unchanged, in order, at once, and in the right block."""

from __future__ import annotations

import os
from pathlib import Path

from shell_runtimes import ShellRuntime, bash, fresh, shell
from waiting import until, until_ended

__all__ = ["bash", "fresh", "shell"]


def test_both_streams_stay_in_order(shell: ShellRuntime) -> None:
    ran = shell.do("for n in 1 2 3; do echo out $n; echo err $n >&2; sh -c 'echo child; echo child err >&2'; done")
    assert ran.text == "".join(f"out {n}\nerr {n}\nchild\nchild err\n" for n in (1, 2, 3))


def test_blocks_without_output_print_nothing(shell: ShellRuntime) -> None:
    assert shell.do("x=1\n\ny=2\n").text == ""
    assert shell.do("sleep 0.01 & wait; sleep 0.02 & sleep 0.1; echo end").text == "end\n"


def test_error_messages_do_not_mention_our_files(shell: ShellRuntime) -> None:
    kind = shell.kind
    there = "line 2: no_such_program" if kind == "bash" else "2: command not found: no_such_program"
    ran = shell.do("printf x\nno_such_program\necho end")
    assert there in ran.text and ran.text.startswith(f"x{kind}:") and ran.text.endswith("end\n")
    assert "/block" not in ran.text + shell.do("if then").text
    assert shell.do('echo "$__oi_folder/block1"').text.endswith("/block1\n")  # the output of programs is unchanged


def test_output_streams_line_by_line(shell: ShellRuntime, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    seen: list[str] = []

    def on_output(text: str) -> None:
        if text == "first\n":
            seen.append(text)
            gate.write_text("")

    program = f"import sys; print('first'); open({str(gate)!r}).read(); print('second', sys.stdout.isatty())"
    assert shell.do(f'python3 -c "{program}"', on_output).text == "first\nsecond True\n"
    assert seen == ["first\n"]


def test_100000_lines_arrive_complete(shell: ShellRuntime) -> None:
    ran = shell.do("seq 100000")
    assert ran.text == "".join(f"{n}\n" for n in range(1, 100_001))
    assert Path(ran.chunks[-1]["truncated"]).stat().st_size == len(ran.text)


def test_a_line_of_10_megabytes_arrives_complete(shell: ShellRuntime) -> None:
    text = shell.do("head -c 10000000 /dev/zero | tr '\\0' x; echo; echo end").text
    assert len(text) == 10_000_005 and text.endswith("x\nend\n")


def test_invalid_utf_8_is_replaced(shell: ShellRuntime) -> None:
    assert shell.do("printf 'a\\377\\376b\\n'").text == "a\ufffd\ufffdb\n"
    assert len(shell.do("head -c 100000 /dev/urandom").text) > 10_000
    assert shell.do("printf '\\303'; sleep 0.05; printf '\\251 \\U1F600\\n'").text == "é 😀\n"
    assert shell.do("echo 'ünï 😀 文'").text == "ünï 😀 文\n"


def test_control_characters_arrive_unchanged(shell: ShellRuntime) -> None:
    ran = shell.do("printf 'a\\rb\\nc\\r\\nd\\te\\033[31mf\\004\\003\\032g\\n'")
    assert ran.text == "a\rb\nc\r\nd\te\x1b[31mf\x04\x03\x1ag\n"


def test_exit_codes(shell: ShellRuntime) -> None:
    for code in (0, 1, 3, 127, 255):
        assert shell.do(f"(exit {code})").exit_code == code
    assert shell.do("false; true").exit_code == 0


def test_a_crash_of_a_program_is_reported(bash: ShellRuntime) -> None:
    ran = bash.do("sh -c 'kill -SEGV $$'; echo after")
    assert "Segmentation fault" in ran.text and ran.text.endswith("after\n")


def test_late_output_stays_with_its_block(fresh: ShellRuntime, tmp_path: Path) -> None:
    gate, ready = tmp_path / "gate", tmp_path / "ready"
    for fifo in (gate, ready):
        os.mkfifo(fifo)
    started = fresh.do(f"(cat {gate}; echo late; echo > {ready}) & echo started")
    assert started.text == "started\n"
    assert fresh.runtime is not None and fresh.runtime.block is not None
    first = fresh.runtime.block
    assert fresh.do(f": > {gate}; cat {ready}; echo own").text == "\nown\n"
    until(lambda: not first.running, "the end of its background process")
    assert first.spool.read() == "started\nlate\n"


def test_a_flood_from_the_background_neither_blocks_nor_leaks(fresh: ShellRuntime, tmp_path: Path) -> None:
    fresh.do(f"yes noise & echo $! > {tmp_path}/pid")
    pid = int((tmp_path / "pid").read_text())
    for n in range(5):
        assert fresh.do(f"echo {n}").text == f"{n}\n"
    fresh.do(f"kill -9 {pid}")
    until_ended([pid])


def test_redirecting_the_shell_itself_lasts_for_one_block(shell: ShellRuntime, tmp_path: Path) -> None:
    shell.do(f"exec >{tmp_path}/log 2>&1; echo hidden; exec 0<&-; exec 7>{tmp_path}/seven")
    assert shell.do("echo shown; echo too >&2").text == "shown\ntoo\n"
    assert (tmp_path / "log").read_text() == "hidden\n"
    shell.do("echo kept >&7; exec 7>&-")
    assert (tmp_path / "seven").read_text() == "kept\n"


def test_closing_all_streams_does_no_harm(shell: ShellRuntime) -> None:
    shell.do("exec 0<&- 1>&- 2>&-; echo nowhere")
    assert shell.do("echo again").text == "again\n"


def test_pagers_are_off_and_terminal_settings_apply(tmp_path: Path) -> None:
    session = ShellRuntime("bash", size=(123, 45))
    assert session.do("echo $TERM; stty size < /dev/stdout 2>/dev/null || stty -F /proc/self/fd/2 size").text in (
        "dumb\n45 123\n",
        "dumb\n",
    )
    assert session.do("python3 -c 'import os; print(*os.get_terminal_size(1))'").text == "123 45\n"
    assert session.do("echo $PAGER $GIT_PAGER $MANPAGER").text == "cat cat cat\n"
    session.context.colors = True
    assert session.do("echo $TERM").text == "xterm-256color\n"
    session.context.colors = False
    assert session.do("echo $TERM").text == "dumb\n"
    session.terminate()
