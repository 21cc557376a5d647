"""The command that adds an extra to this installation, and `interpreter --install`, which runs it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from interpreter.errors import UsageError
from interpreter.frontends.cli import main
from interpreter.host.installation import extras, install_command, install_hint
from interpreter.version import __version__
from terminal.person import ENTER, PROGRAM, Person

ROOT = Path(__file__).parents[2]
SERVER = ["starlette>=1.0,<2", "uvicorn>=0.40", "websockets>=15"]


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a separate environment with a release that was installed from an index."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    installed_from(tmp_path, {})
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def installed_from(folder: Path, source: dict[str, object]) -> None:
    place = folder / f"open_interpreter-{__version__}.dist-info"
    place.mkdir(exist_ok=True)
    lines = [f"Requires-Dist: {each}; extra == 'server'" for each in SERVER]
    lines += [
        "Requires-Dist: mss>=10; extra == 'os'",
        "Requires-Dist: Xlib>=0.33; (sys_platform == 'linux') and extra == 'os'",
    ]
    lines += [
        "Requires-Dist: pytest; extra == 'dev'",
        "Requires-Dist: pexpect>=4; extra == 'schema'",
        "Requires-Dist: httpx",
    ]
    header = f"Metadata-Version: 2.4\nName: open-interpreter\nVersion: {__version__}\n"
    (place / "METADATA").write_text(header + "\n".join(lines) + "\n")
    (place / "direct_url.json").write_text(json.dumps(source))


def test_a_checkout_is_named_by_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed_from(tmp_path, {"url": tmp_path.as_uri(), "dir_info": {"editable": True}})
    monkeypatch.syspath_prepend(str(tmp_path))
    assert install_command("server")[3:] == ["install", "-e", f"{tmp_path}[server]"]
    monkeypatch.chdir(tmp_path)
    assert shlex.split(install_hint("server"))[3:] == ["install", "-e", ".[server]"]
    monkeypatch.setattr(sys, "executable", str(tmp_path / ".venv" / "bin" / "python"))
    assert install_hint("server") == ".venv/bin/python -m pip install -e '.[server]'"


def test_elsewhere_the_running_python_gets_it_and_never_another_version(prefix: Path) -> None:
    *program, install, wanted = install_command("server")
    assert program[0].startswith(os.path.dirname(sys.executable))
    assert (install, wanted) == ("install", f"open-interpreter[server]=={__version__}")


def test_pipx_adds_the_packages_themselves(prefix: Path) -> None:
    (prefix / "pipx_metadata.json").touch()
    assert install_command("server") == ["pipx", "inject", "open-interpreter", *SERVER]
    assert install_command("os")[3:] == ["mss>=10", "Xlib>=0.33; sys_platform == 'linux'"]


def test_uv_tool_installs_from_the_same_source_and_keeps_the_extras(prefix: Path) -> None:
    row = '{ name = "open-interpreter", extras = ["schema"] }'
    (prefix / "uv-receipt.toml").write_text(f'[tool]\nrequirements = [{row}, {{ name = "numpy" }}]\n')
    tool = ["uv", "tool", "install"]
    assert install_command("server") == [
        *tool,
        f"open-interpreter[schema,server]=={__version__}",
        *("--with", "numpy"),
    ]
    control = {"vcs": "git", "commit_id": "abc123", "requested_revision": "main"}
    installed_from(prefix, {"url": "https://example.org/oi.git", "vcs_info": control})
    source = "git+https://example.org/oi.git@abc123"
    assert install_command("server")[3] == f"open-interpreter[schema,server] @ {source}"
    installed_from(prefix, {"url": prefix.as_uri(), "dir_info": {"editable": True}})
    assert install_command("server")[3:5] == ["-e", f"{prefix}[schema,server]"]


def test_an_unknown_extra_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match=r"no extra 'pandas'.*browser.*server"):
        install_command("pandas")
    assert main(["--install", "pandas"]) == 2
    assert "Available: browser, calendar" in capsys.readouterr().err
    assert not {"dev", "docs"} & extras().keys()


PIPX = """\
#!/bin/sh
printf '%s|' "$@" > "$(dirname "$0")/arguments"
echo "installing"
exit ${{FAILS:-{code}}}
"""


def environment(prefix: Path, code: int = 0) -> list[str]:
    """The program in an environment of pipx, whose program notes its arguments."""
    (prefix / "pipx_metadata.json").touch()
    pipx = prefix / "pipx"
    pipx.write_text(PIPX.format(code=code))
    pipx.chmod(0o755)
    begin = f"import sys; sys.prefix = {str(prefix)!r}; sys.path.insert(0, sys.prefix)\n"
    return [sys.executable, "-c", begin + PROGRAM]


def test_install_shows_the_command_asks_and_runs_it(prefix: Path) -> None:
    path = f"{prefix}{os.pathsep}{os.environ['PATH']}"
    person = Person([*environment(prefix), "--install", "server"], env={"PATH": path})
    person.sees("pipx inject open-interpreter 'starlette>=1.0,<2'")
    person.answers("Install it now? [Y/n]", "n")
    person.sees("Not installed. To install it yourself, run: pipx inject")
    assert person.ends() == 1
    assert not (prefix / "arguments").exists()
    person = Person([*environment(prefix), "--install", "server"], env={"PATH": path})
    person.sees("Install it now? [Y/n]")
    person.types(ENTER)
    person.sees("installing")
    person.sees("Installed server.")
    assert person.ends() == 0
    assert (prefix / "arguments").read_text() == "|".join(["inject", "open-interpreter", *SERVER, ""])


def test_without_a_terminal_only_y_installs(prefix: Path) -> None:
    env = {**os.environ, "PATH": f"{prefix}{os.pathsep}{os.environ['PATH']}"}
    argv = [*environment(prefix), "--install", "server"]

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*argv, *more], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
        )

    assert run().returncode == 1
    assert not (prefix / "arguments").exists()
    assert run("-y", "--offline").returncode != 0
    assert not (prefix / "arguments").exists()
    assert run("-y").returncode == 0
    assert (prefix / "arguments").exists()
    environment(prefix, code=1)
    failed = run("-y")
    assert failed.returncode == 1
    assert "The installation failed" in failed.stderr


def test_every_message_and_page_uses_this_command() -> None:
    """A name on the index would fetch the original, wherever ours is not installed."""
    files = [*ROOT.glob("src/**/*.py"), *ROOT.glob("src/**/*.yaml"), *ROOT.glob("src/**/*.js"), *ROOT.glob("docs/*.md")]
    others = [
        path.relative_to(ROOT).as_posix()
        for path in [*files, ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]
        if "open-interpreter[" in path.read_text(encoding="utf-8")
    ]
    assert others == []


@pytest.mark.parametrize("folder", ["src", "docs"])
def test_install_flags_in_messages_and_pages_name_real_extras(folder: str) -> None:
    import re

    named = {
        word
        for path in (ROOT / folder).rglob("*.*")
        if path.suffix in (".py", ".md", ".yaml")
        for word in re.findall(r"(?:interpreter --|%)install ([a-z]+)", path.read_text(encoding="utf-8"))
    }
    assert named <= extras().keys()
