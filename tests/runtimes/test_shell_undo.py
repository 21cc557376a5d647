"""The state of a shell after any of its last blocks can be restored, and later states again."""

from __future__ import annotations

import pytest

from interpreter.errors import NotRestorableError
from shell_runtimes import ShellRuntime, fresh, shell

__all__ = ["fresh", "shell"]

STATES = {
    "variable": ("v=1", "v=2", "echo $v"),
    "array": ("v=(a 'b c')", "v+=(d)", "echo ${#v[@]}"),
    "function": ("f() { echo one; }", "f() { echo two; }", "f"),
    "alias": ("alias g='echo one'", "alias g='echo two'", "g"),
    "option": ("set +o noglob", "set -o noglob", "echo /etc/host[s]"),
    "directory": ("cd /", "cd /tmp", "pwd"),
    "export": ("export V=1", "export V=2", "sh -c 'echo $V'"),
    "unset": ("v=1", "unset v", "echo 'v'$v"),
}


@pytest.mark.parametrize("name", STATES)
def test_state_can_be_undone_and_redone(shell: ShellRuntime, name: str) -> None:
    make, change, show = STATES[name]
    shell.do(make)
    then, before = shell.present, shell.do(show).text
    shell.do(change)
    later, after = shell.present, shell.do(show).text
    assert before != after
    for state, shown in ((then, before), (later, after), (then, before)):
        shell.restore(state)
        assert shell.do(show).text == shown


def test_the_state_after_an_exit_can_be_restored(fresh: ShellRuntime) -> None:
    fresh.do("v=1; exit 3")
    state = fresh.present
    fresh.do("v=2; exit 4")
    fresh.restore(state)
    assert fresh.do("echo $v").text == "1\n"


def test_a_shell_killed_after_undo_keeps_the_restored_state(fresh: ShellRuntime) -> None:
    fresh.do("v=1")
    state = fresh.present
    fresh.do("v=2")
    fresh.restore(state)
    assert fresh.do("v=3; kill -9 $$").ended == "died"
    assert fresh.do("echo $v").text == "1\n"


def test_the_initial_state_can_be_restored(fresh: ShellRuntime) -> None:
    state = fresh.present
    fresh.do("v=1; cd /")
    fresh.restore(state)
    assert fresh.do("echo v$v $PWD").text == f"v {fresh.runtime.launch.cwd if fresh.runtime else ''}\n"


def test_listed_variables_are_those_of_the_restored_state(fresh: ShellRuntime) -> None:
    fresh.do("v=1")
    state = fresh.present
    fresh.do("v=2")
    fresh.restore(state)
    assert [variable.preview for variable in fresh.variables() if variable.name == "v"] == ["1"]


def test_the_oldest_states_are_dropped_first(fresh: ShellRuntime) -> None:
    fresh.context.snapshots = 3
    states = []
    for number in range(9):
        fresh.do(f"v={number}")
        states.append(fresh.present)
    with pytest.raises(NotRestorableError):
        fresh.restore(states[0])
    fresh.restore(states[-3])
    assert fresh.do("echo $v").text == "6\n"


def test_an_exit_under_nounset_keeps_the_state(fresh: ShellRuntime) -> None:
    fresh.do("pushd / >/dev/null; set -o nounset\nv=kept; exit 0")
    assert fresh.do('echo "$v"; dirs -p | wc -l').text.split() == ["kept", "2"]


def test_a_removed_alias_stays_removed_after_an_exit(fresh: ShellRuntime) -> None:
    fresh.do("alias g='echo one'")
    fresh.do("exit 0")
    fresh.do("unalias g")
    state = fresh.present
    fresh.do("v=1")
    fresh.restore(state)
    assert "one" not in fresh.do("alias g").text
