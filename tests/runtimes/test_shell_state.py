"""What a shell keeps between blocks, and what the next shell takes over when one ends."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from shell_runtimes import ShellRuntime, bash, fresh, shell
from waiting import is_running, until_ended

__all__ = ["bash", "fresh", "shell"]

STATE = """
cd /usr/lib
plain='a "b" $c'; export SHOWN=$'two\\nlines'
list=(1 '2 3' ''); typeset -A map; map[key]='v w'; typeset -i number=7
double() { echo $(($1 * 2)); }
alias greet='echo hello'
umask 027
"""
RECALL = """
pwd
echo "$plain|$SHOWN|${list[@]}|${#list[@]}|${map[key]}|$number"
double 21
greet
umask
number+=1; echo $number
"""
RECALLED = '/usr/lib\na "b" $c|two\nlines|1 2 3 |3|v w|7\n42\nhello\n{umask}\n8\n'


def recalled(session: ShellRuntime) -> str:
    return RECALLED.format(umask="0027" if session.kind == "bash" else "027")


def test_state_is_kept_between_blocks(fresh: ShellRuntime) -> None:
    assert fresh.do(STATE).ended == "done"
    assert fresh.do(RECALL).text == recalled(fresh)


@pytest.mark.parametrize(
    ("end", "code", "ended"),
    [
        ("exit 3", 3, "error"),
        ("exit", 0, "done"),
        (
            "leave() { local plain=other list=; exit 4; }; outer() { local SHOWN=no; leave; }; outer",
            4,
            "error",
        ),
        ("set -e; false; echo not reached", 1, "error"),
        ("exec true", 0, "done"),
        ("kill -9 $$", -9, "died"),
        ("kill $$; sleep 10", -15, "died"),
    ],
)
def test_state_survives_the_end_of_a_shell(fresh: ShellRuntime, end: str, code: int, ended: str) -> None:
    fresh.do(STATE)
    ran = fresh.do(end)
    assert (ran.exit_code, ran.ended) == (code, ended)
    assert "not reached" not in ran.text
    assert fresh.do("set +e\n" + RECALL).text == recalled(fresh)


@pytest.mark.parametrize("end", ["exit 3", "false; exit", "set -e; false", "${unset:?gone}"])
def test_changes_of_the_last_block_survive_the_end_of_a_shell(fresh: ShellRuntime, end: str, tmp_path: Path) -> None:
    fresh.do(f"cd {tmp_path}; word=kept; export SHARED=this; f() {{ echo fun; }}; {end}")
    assert fresh.context.cwd == str(tmp_path)
    assert fresh.context.exported["SHARED"] == "this"
    assert fresh.do("set +e; pwd; echo $word $SHARED; f").text == f"{tmp_path}\nkept this\nfun\n"


def test_locals_of_a_function_that_exits_do_not_become_variables(bash: ShellRuntime) -> None:
    bash.do("word=outer")
    bash.do("f() { local word=inner IFS=,; made=yes; g; }; g() { local deep=1; exit 1; }; f")
    assert bash.do('printf %q "$IFS"; echo " $word $made"').text == "$' \\t\\n' outer yes\n"


def test_a_killed_shell_is_reported(shell: ShellRuntime) -> None:
    assert "SIGKILL" in shell.do("kill -9 $$").text
    assert shell.do("exit 3").text == ""


def test_options_stay(fresh: ShellRuntime) -> None:
    option = "shopt -s nullglob dotglob" if fresh.kind == "bash" else "setopt nullglob globdots"
    fresh.do(f"{option}; set -u")
    fresh.do("exit 1")
    ran = fresh.do("echo /nonexistent/*; echo $missing; echo not reached")
    assert ran.text.startswith("\n") and "not reached" not in ran.text


def test_a_failure_under_errexit_ends_only_the_block(shell: ShellRuntime) -> None:
    ran = shell.do("set -e\necho one\nfalse\necho two")
    assert (ran.text, ran.ended, ran.exit_code) == ("one\n", "error", 1)
    assert shell.do("echo on; set +e").text == "on\n"


def test_arguments_and_directory_stack_survive_the_end_of_a_shell(bash: ShellRuntime) -> None:
    bash.do("set -- one 'two three'; cd /usr; pushd /tmp >/dev/null")
    bash.do("kill -9 $$")
    assert bash.do('echo "$2"; popd >/dev/null; pwd').text == "two three\n/usr\n"


def test_the_last_status_is_seen_by_the_next_block(shell: ShellRuntime) -> None:
    ran = shell.do("sh -c 'exit 7'")
    assert (ran.exit_code, ran.ended) == (7, "error")
    assert shell.do("echo $?").text == "7\n"
    shell.do("exit 9")
    assert shell.do("echo $?").text == "9\n"


def test_an_exit_trap_runs_once_and_its_output_is_shown(fresh: ShellRuntime) -> None:
    assert fresh.do("trap 'echo bye' EXIT").text == ""
    assert fresh.do("echo still here").text == "still here\n"
    ran = fresh.do("late=1; exit 5")
    assert (ran.text, ran.exit_code) == ("bye\n", 5)
    assert fresh.do("echo $late; exit 6").text == "1\n"


def test_an_exit_trap_of_the_same_block_runs_too(fresh: ShellRuntime) -> None:
    fresh.do("word=kept")
    ran = fresh.do("trap 'echo cleaned' EXIT; set -e; false")
    assert (ran.text.splitlines()[0], ran.exit_code) == ("cleaned", 1)
    assert fresh.do("echo $word").text == "kept\n"


def test_background_jobs_survive_the_end_of_their_shell(fresh: ShellRuntime) -> None:
    process = psutil.Process(int(fresh.do("sleep 1000 & echo $!").text))
    fresh.do("exit 3")
    fresh.do("kill -9 $$")
    assert is_running(process)
    fresh.do(f"kill {process.pid}")
    until_ended([process])


def test_aliases_share_one_session() -> None:
    from interpreter.computer_api.computer import Computer

    computer = Computer()
    computer.run("shell", "word=same")
    texts = [computer.run(name, "echo $word")[0]["content"] for name in ("bash", "sh", "zsh", "Shell", "bat")]
    computer.terminate()
    assert texts == ["same\n"] * 5


@pytest.mark.full
def test_a_large_variable_survives_the_end_of_a_shell(bash: ShellRuntime) -> None:
    bash.do("printf -v big %05000000d 0")
    bash.do("exit 1")
    assert bash.do("echo ${#big}").text == "5000000\n"


def test_startup_files_are_read_only_on_request(home: Path, tmp_path: Path) -> None:
    guard = "case $- in *i*) ;; *) return;; esac\n"
    (home / ".bashrc").write_text(guard + "export FROM_RC=yes; alias rc='echo from rc'; echo noise; PS1='> '\n")
    (home / ".bash_profile").write_text("FROM_RC=profile\n")
    for wanted, text in ((False, "no\n"), (True, "yes\nfrom rc\n")):
        session = ShellRuntime("bash", shell_rc=wanted)
        assert session.do('echo "${FROM_RC-no}"; alias rc >/dev/null 2>&1 && eval rc || :').text == text
        session.terminate()


@pytest.mark.needs("zsh")
def test_zsh_startup_files_are_read_on_request(home: Path) -> None:
    (home / ".zshrc").write_text("FROM_RC=yes; alias rc='echo from rc'; setopt extendedglob; PROMPT_SUBST=1\n")
    session = ShellRuntime("zsh", shell_rc=True)
    assert session.do("echo $FROM_RC; rc; [[ -o extendedglob ]] && echo option").text == "yes\nfrom rc\noption\n"
    session.terminate()
