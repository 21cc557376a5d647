"""Shell completion, as the shells themselves offer it."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pexpect
import pytest

from interpreter.config.settings import SETTINGS
from interpreter.frontends.flags import COMMANDS, completion_script, flags, parse
from profiles.programs import folder, interpreter


def in_bash(home: Path, *words: str) -> set[str]:
    file = home / "completion.bash"
    file.write_text(completion_script("bash"))
    ask = (
        f"source {file}; COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}; "
        'complete -p interpreter i >/dev/null && _interpreter && printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "--norc", "-c", ask], capture_output=True, text=True, timeout=60, cwd=home)
    assert done.stderr == ""
    return set(done.stdout.split())


def in_fish(home: Path, line: str) -> set[str]:
    file = home / "completion.fish"
    file.write_text(completion_script("fish"))
    ask = f"source {file}; complete -C {shlex.quote(line)}"
    done = subprocess.run(["fish", "--no-config", "-c", ask], capture_output=True, text=True, timeout=60, cwd=home)
    assert done.stderr == ""
    return {row.split("\t")[0] for row in done.stdout.splitlines()}


def after_tab(home: Path, line: str, added: str) -> None:
    """Type a line and Tab in a zsh at a terminal, and wait for the text that it adds."""
    (home / "completion.zsh").write_text(completion_script("zsh"))
    rc = "PS1='> '; autoload -U compinit; compinit -u; zstyle ':completion:*' list-prompt ''; LISTMAX=1000\n"
    (home / ".zshrc").write_text(rc + f"source {home / 'completion.zsh'}; echo ready\n")
    env = {"HOME": str(home), "ZDOTDIR": str(home), "TERM": "dumb", "PATH": "/usr/local/bin:/usr/bin:/bin"}
    child = pexpect.spawn("zsh", ["-i"], env=env, encoding="utf-8", timeout=60, dimensions=(60, 200), cwd=str(home))  # type: ignore[arg-type]
    try:
        child.expect("ready")
        child.expect("> ")
        child.send(line)
        child.expect_exact(line)
        child.send("\t")
        child.expect_exact(added)
    finally:
        child.close(force=True)


@pytest.fixture
def profiles(home: Path) -> Path:
    (folder(home) / "mine.yaml").touch()
    return home


def test_every_flag_is_offered_and_understood() -> None:
    offered = {name for flag in flags() if flag.offered for name in flag.names}
    for row in (*SETTINGS, *COMMANDS):
        assert {name for name in (row.flag, row.short, getattr(row, "no_flag", "")) if name} <= offered
    for flag in flags():
        for name in flag.names:
            choices, takes_value = flag.target.choices, flag.switch is None
            value = [(choices or ("1",))[0]] if takes_value else []
            parse([name, *value])


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["--max_b"], {"--max_budget", "--max_budget_tokens", "--max_blocks"}),
        (["--max-t"], {"--max-tokens", "--max-turns"}),
        (["--safe_mode", ""], {"off", "ask", "auto"}),
        (["--safe-mode", "a"], {"ask", "auto"}),
        (["--safe_mode", "=", "o"], {"off"}),
        (["-y", "--completion", ""], {"bash", "zsh", "fish"}),
        (["--profile", "m"], {"mine.yaml"}),
        (["-p", "codestral-"], {"codestral-few-shot", "codestral-os", "codestral-vision"}),
        (["--no-highl"], {"--no-highlight-active-line"}),
        (["hello"], set()),
    ],
)
def test_bash_completes_flags_and_values(profiles: Path, words: list[str], offered: set[str]) -> None:
    assert in_bash(profiles, "interpreter", *words) == offered
    assert in_bash(profiles, "i", *words) == offered


@pytest.mark.needs("fish")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("interpreter --max_b", {"--max_budget", "--max_budget_tokens", "--max_blocks"}),
        ("interpreter --safe_mode ", {"off", "ask", "auto"}),
        ("i --completion ", {"bash", "zsh", "fish"}),
        ("interpreter --profile m", {"mine.yaml"}),
        ("interpreter --profile codestral-o", {"codestral-os"}),
        ("interpreter --output_schema sch", {"schema.json"}),
    ],
)
def test_fish_completes_flags_and_values(profiles: Path, line: str, offered: set[str]) -> None:
    (profiles / "schema.json").touch()
    assert in_fish(profiles, line) == offered


@pytest.mark.needs("zsh")
@pytest.mark.parametrize(
    ("line", "added"),
    [
        ("interpreter --max_tu", "rns"),
        pytest.param("interpreter --max-tu", "_turns", marks=pytest.mark.full),
        pytest.param("interpreter --safe_mode au", "to", marks=pytest.mark.full),
        ("interpreter --profile mi", "ne.yaml"),
        pytest.param("interpreter --output_schema sch", "ema.json", marks=pytest.mark.full),
        pytest.param("i --completion f", "ish", marks=pytest.mark.full),
    ],
)
def test_zsh_completes_flags_and_values(profiles: Path, line: str, added: str) -> None:
    (profiles / "schema.json").touch()
    after_tab(profiles, line, added)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_program_prints_the_completion_script(shell: str) -> None:
    done = interpreter("--completion", shell)
    assert (done.returncode, done.stdout) == (0, completion_script(shell) + "\n")


def test_an_unknown_shell_is_refused() -> None:
    done = interpreter("--completion", "tcsh")
    assert done.returncode == 2
    assert "--completion takes bash or zsh or fish" in done.stderr
