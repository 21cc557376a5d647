"""`wtf` in real shells, with a scripted model."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from model_server import ModelServer, text, tool_call
from sampling import some
from wtf.shells import PROMPT, SHELLS, shell_with_hook

pytestmark = [pytest.mark.needs("bash", "zsh")]
QUESTION = "Run? [y]es  [n]o"


def said(server: ModelServer, number: int = 0) -> str:
    """The user's last message to the model."""
    content: Any = server.requests[number].messages[-1]["content"]
    return content if isinstance(content, str) else json.dumps(content)


def environment(server: ModelServer) -> dict[str, str]:
    return {"OPENAI_API_BASE": server.base_url}


@pytest.mark.parametrize("name", some(1, SHELLS))
def test_the_failed_command_is_explained_and_the_fix_runs_after_approval(
    name: str, tmp_path: Path, no_strays: None
) -> None:
    replies = [text("The folder is missing.").then(tool_call("shell", "mkdir fixed")), text("Made it.")]
    with ModelServer(replies) as server, shell_with_hook(name, tmp_path, **environment(server)) as shell:
        shell.types("ls missing")
        shell.types("(exit 4) # 'quoted' \"too\"" if name == "bash" else "(exit 4)")
        shell.types("cd /")
        shell.types(f"cd {tmp_path / 'work'}")
        shell.child.sendline("wtf")
        shown = shell.waits_for(QUESTION)
        assert "The folder is missing." in shown and "mkdir fixed" in shown
        assert not (tmp_path / "work" / "fixed").exists()
        assert "only the command and its status are known" in shown.lower()
        shell.child.send("y\r")
        shell.waits_for("Made it.")
        shell.waits_for(PROMPT)
        assert (tmp_path / "work" / "fixed").is_dir()
        sent = said(server)
        assert "(exit 4)" in sent and "status 4" in sent and "Its output is unknown." in sent
        assert str(tmp_path / "work") in sent and name in sent


def test_declining_runs_nothing(tmp_path: Path, no_strays: None) -> None:
    reply = text("Hm.").then(tool_call("shell", "touch made"))
    with ModelServer([reply]) as server, shell_with_hook("bash", tmp_path, **environment(server)) as shell:
        shell.types("echo ran >> runs; false")
        shell.child.sendline("wtf")
        shell.waits_for(QUESTION)
        shell.child.send("n\r")
        shell.waits_for(PROMPT)
        assert not (tmp_path / "work" / "made").exists()
        assert (tmp_path / "work" / "runs").read_text() == "ran\n"  # and only once
        assert "<1|echo ran >> runs; false>" in shell.types(
            'printf "<%s|%s>\\n" "$__wtf_status" "$__wtf_command"'
        )  # not wtf itself


@pytest.mark.full
def test_the_yes_option_still_asks_for_approval(tmp_path: Path, no_strays: None) -> None:
    reply = text("So.").then(tool_call("shell", "touch made"))
    with ModelServer([reply]) as server, shell_with_hook("bash", tmp_path, **environment(server)) as shell:
        shell.types("false")
        shell.child.sendline("wtf -y why though")
        shell.waits_for(QUESTION)
        shell.child.send("n\r")
        shell.waits_for(PROMPT)
        assert "why though" in said(server)
        assert not (tmp_path / "work" / "made").exists()


@pytest.mark.parametrize("name", some(1, SHELLS))
def test_the_recorder_provides_the_output(name: str, tmp_path: Path, no_strays: None) -> None:
    with (
        ModelServer([text("I see.")]) as server,
        shell_with_hook(name, tmp_path, record=True, **environment(server)) as shell,
    ):
        shell.types("echo before")
        shell.types("printf 'progress 1\\rprogress 2\\n\\033[31mred trouble\\033[0m\\n'; test -t 1 && (exit 9)")
        shell.types("echo after; ls -d /")
        shell.types("wtf is it")
        sent = said(server)
        assert "```text\nprogress 2\nred trouble\n```" in sent
        assert "status 9" in sent and "is it" in sent
        assert "before" not in sent and "after" not in sent
        found = re.search(r"/\S*/wtf-\w+", shell.types("echo $WTF_RECORD"))
        assert found is not None
        record = Path(found[0])
        assert record.stat().st_mode & 0o777 == 0o600
        shell.child.sendline("exit 3")
        shell.child.expect_exact("exit" if name == "bash" else "3")
        shell.child.wait()
        assert shell.child.exitstatus == 3
        assert not record.exists()


@pytest.mark.needs("tmux")
def test_the_tmux_pane_provides_the_output(tmp_path: Path) -> None:
    socket = str(tmp_path / "tmux")
    tmux = [str(shutil.which("tmux")), "-S", socket, "-f", "/dev/null"]
    run = [sys.executable, "-c", "from interpreter.frontends.wtf import main; main()", "--show"]
    command = f"echo first; echo 'the trouble' >&2; WTF_STATUS=2 WTF_COMMAND=make WTF_SURE=1 {' '.join(map(repr, run))} > shown"
    script = tmp_path / "script"
    script.write_text(f"echo '$ earlier'; echo '$ make'; {command}; {' '.join(tmux)} wait-for -S done; sleep 100\n")
    try:
        subprocess.run(
            [*tmux, "new-session", "-d", "-x", "100", "-y", "30", "sh", str(script)], check=True, cwd=tmp_path
        )
        subprocess.run([*tmux, "wait-for", "done"], check=True, timeout=60)
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)
    shown = (tmp_path / "shown").read_text()
    assert "make\n```" in shown and "status 2" in shown
    assert "$ make\nfirst\nthe trouble" in shown and "earlier" not in shown


def wtf(*arguments: str, piped: str | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    program = [
        sys.executable,
        "-c",
        "import sys; from interpreter.frontends.wtf import main; sys.exit(main())",
    ]
    env = {**os.environ, "TMUX": "", **variables}
    source: dict[str, Any] = {"input": piped} if piped is not None else {"stdin": subprocess.DEVNULL}
    return subprocess.run(
        [*program, *arguments], capture_output=True, text=True, env=env, timeout=60, check=False, **source
    )


FAILED = {"WTF_STATUS": "1", "WTF_COMMAND": "make", "WTF_SURE": "1", "WTF_SHELL": "bash"}


def test_piped_input_is_explained() -> None:
    with ModelServer([text("A semicolon is missing.")]) as server:
        done = wtf(piped="x.c:3: error: expected ';'\n", OPENAI_API_BASE=server.base_url, OPENAI_API_KEY="key")
        assert done.returncode == 0, done.stderr
        assert "A semicolon is missing." in done.stdout
        assert "x.c:3: error" in said(server)


def test_without_a_hook_the_error_says_how_to_install_it() -> None:
    done = wtf()
    assert done.returncode == 1
    assert "interpreter --shell-hook bash" in done.stderr and done.stdout == ""


def test_secrets_are_not_sent() -> None:
    key = "sk-proj-" + "a1B2" * 10
    done = wtf(
        "--show",
        piped=f"401 for {key} and hunter2hunter2 HIDDEN_VALUE_1",
        MY_TOKEN="hunter2hunter2",
        HIDDEN="x9" * 9,
        **FAILED,
    )
    assert "401 for" in done.stdout
    assert key not in done.stdout and "hunter2" not in done.stdout and "x9x9" not in done.stdout


def test_source_lines_named_in_a_traceback_are_sent(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("\n".join(f"line{number} = {number}" for number in range(1, 30)))
    trace = f'Traceback:\n  File "{tmp_path}/app.py", line 10, in <module>\n  File "/etc/passwd", line 1, in x\nError\n'
    shown = wtf("--show", piped=trace, WTF_FOLDER=str(tmp_path), **FAILED).stdout
    assert "10: line10 = 10" in shown and "6: line6" in shown and "15: line15" not in shown
    assert "root:" not in shown


@pytest.mark.full
def test_a_profile_can_set_another_model(home: Path, tmp_path: Path) -> None:
    profile = tmp_path / "mine.yaml"
    profile.write_text("llm:\n  model: gpt-4o\nwtf:\n  model: gpt-4o-mini\n")
    with ModelServer([text("a"), text("b")]) as server:
        where = {"OPENAI_API_BASE": server.base_url, "OPENAI_API_KEY": "key", **FAILED}
        assert wtf("--profile", str(profile), **where).returncode == 0
        assert wtf("--profile", str(profile), "--model", "gpt-4.1", **where).returncode == 0
        assert [request.body["model"] for request in server.requests] == ["gpt-4o-mini", "gpt-4.1"]


def test_no_conversation_is_saved(home: Path) -> None:
    with ModelServer([text("a")]) as server:
        wtf(OPENAI_API_BASE=server.base_url, OPENAI_API_KEY="key", **FAILED)
    kept = [path.name for path in home.rglob("*") if path.suffix in (".jsonl", ".json")]
    assert set(kept) <= {"packages.json"}  # a cache of what is installed


def test_recording_twice_or_without_a_terminal_is_refused() -> None:
    assert "already" in wtf("--record", WTF_RECORD="/x").stderr
    done = wtf("--record")
    assert done.returncode == 2 and "terminal" in done.stderr
