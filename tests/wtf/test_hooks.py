"""The shell hook remembers the last failed command and changes nothing else."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from interpreter.frontends.cli import main
from interpreter.frontends.wtf import hook
from wtf.shells import SHELLS, shell_with_hook

pytestmark = [pytest.mark.needs("bash", "zsh")]
REMEMBERED = 'printf "<%s|%s>\\n" "$__wtf_status" "$__wtf_command"'


@pytest.mark.parametrize("name", SHELLS)
def test_the_last_failure_is_remembered(name: str, tmp_path: Path, no_strays: None) -> None:
    with shell_with_hook(name, tmp_path) as shell:
        assert "<|>" in shell.types(REMEMBERED)
        shell.types("ls '/no such' | cat; (exit 7)")
        assert "<7|ls '/no such' | cat; (exit 7)>" in shell.types(REMEMBERED)
        shell.types("true")
        shell.types("")
        assert "<7|ls" in shell.types(REMEMBERED)  # later successes don't count
        shell.types("no-such-command")
        assert "<127|no-such-command>" in shell.types(REMEMBERED)


@pytest.mark.parametrize("name", SHELLS)
def test_the_exit_status_and_other_hooks_are_preserved(name: str, tmp_path: Path) -> None:
    with shell_with_hook(name, tmp_path) as shell:
        shell.types("(exit 5)")
        assert "is 5" in shell.types('echo "is $?"')
        if name == "bash":
            shell.types('PROMPT_COMMAND="$PROMPT_COMMAND; last=\\$?"')
        else:
            shell.types("later() { last=$? }; precmd_functions+=(later)")
        shell.types("(exit 6)")
        assert "was 6" in shell.types('echo "was $last"')


def test_a_list_of_prompt_commands_stays_a_list(tmp_path: Path) -> None:
    with shell_with_hook("bash", tmp_path) as shell:
        shell.types("unset __wtf_status; PROMPT_COMMAND=('x=1' 'y=2')")
        (tmp_path / "hook").write_text(hook("bash"))
        shell.types(f"source {tmp_path / 'hook'}")
        assert "__wtf_after x=1 y=2" in shell.types('echo "${PROMPT_COMMAND[@]}"')
        assert "12" in shell.types('echo "$x$y"')


def test_a_command_missing_from_the_history_is_not_certain(tmp_path: Path) -> None:
    with shell_with_hook("bash", tmp_path) as shell:
        shell.types("false plain")
        assert "[1]" in shell.types('echo "[$__wtf_sure]"')
        shell.types(" false hidden")
        assert "[]" in shell.types('echo "[$__wtf_sure]"')


@pytest.mark.parametrize("name", SHELLS)
def test_sourcing_the_hook_twice_or_in_a_script_changes_nothing(name: str, tmp_path: Path) -> None:
    (tmp_path / "hook").write_text(hook(name))
    done = subprocess.run([name, str(tmp_path / "hook")], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == done.stderr == ""
    with shell_with_hook(name, tmp_path) as shell:
        shell.types("false once")
        shell.types(f"source {tmp_path / 'hook'}")
        assert "<1|false once>" in shell.types(REMEMBERED)


@pytest.mark.parametrize("name", SHELLS)
def test_the_command_line_prints_the_hook(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--shell-hook", name]) == 0
    assert capsys.readouterr().out == hook(name) + "\n"


def test_an_unknown_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--shell-hook", "tcsh"]) == 2
    assert "bash" in capsys.readouterr().err
