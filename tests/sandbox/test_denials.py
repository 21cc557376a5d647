"""Denials at the end of a block: what the sandbox blocked, by which rule, and how to request it."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from interpreter.sandbox.places import places
from interpreter.sandbox.proxy import ProxyVerdict
from interpreter.sandbox.requests import EndedBlock, blocked
from interpreter.sandbox.sandbox import Sandbox

from .conftest import Inside


def denials(workspace: Path, code: str = "", kind: str = "workspace", refused: Any = (), **block: Any) -> list[str]:
    sandbox = Sandbox(kind, str(workspace))
    return [str(denial) for denial in blocked(sandbox, places(sandbox, [], []), EndedBlock(code, **block), refused)]


def error(number: int, path: str = "", kind: str = "OSError") -> list[dict[str, Any]]:
    return [{"number": number, "path": path, "kind": kind}]


def test_a_blocked_write_names_the_path_to_request(workspace: Path) -> None:
    (line,) = denials(workspace, errors=error(errno.EROFS, "/etc/hosts"))
    assert line == (
        f"Blocked by the sandbox: writing /etc/hosts. Rule: only {workspace} and temporary folders can be written to "
        "(sandbox workspace). To ask the user for it, start the next block with the comment `needs: write /etc/hosts` "
        "(setting sandbox_paths)."
    )


def test_git_files_cannot_be_requested(workspace: Path) -> None:
    (line,) = denials(workspace, errors=error(errno.EROFS, f"{workspace}/.git/config"))
    assert "git" in line and "needs:" not in line


def test_denials_do_not_reveal_whether_a_hidden_file_exists(workspace: Path, home: Path) -> None:
    (home / "there").touch()
    there, missing = (denials(workspace, errors=error(errno.ENOENT, f"{home}/{name}")) for name in ("there", "miss"))
    assert there[0].startswith("Probably blocked") and missing[0].replace("miss", "there") == there[0]


def test_ordinary_errors_are_not_denials(workspace: Path) -> None:
    assert denials(workspace, errors=error(errno.ENOENT, f"{workspace}/missing")) == []
    assert denials(workspace, errors=error(errno.EACCES, "/usr/lib/x")) == []
    assert denials(workspace, errors=error(errno.EEXIST, f"{workspace}/there")) == []
    assert denials(workspace, "false", exit_code=1) == []
    assert denials(workspace, "cat missing; ls /etc", exit_code=1) == []


def test_hosts_refused_by_the_proxy_are_reported_once(workspace: Path) -> None:
    verdicts = [
        ProxyVerdict("pypi.org", 443, False, "", listed=False),
        ProxyVerdict("pypi.org", 443, False, "", listed=False),
    ]
    (line,) = denials(workspace, refused=verdicts)
    assert line.endswith("the comment `needs: host pypi.org` (setting sandbox_hosts).")
    (line,) = denials(
        workspace, refused=[ProxyVerdict("inner.example", 443, False, "inner.example is 10.0.0.1, private.")]
    )
    assert "10.0.0.1" in line and "needs:" not in line


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("echo x > /etc/hosts", "writing /etc/hosts"),
        ("cd /tmp && touch '/opt/new file'", "writing /opt/new file"),
        ("cat ~/.ssh/id_rsa", ".ssh/id_rsa"),
        ("git clone https://github.com/x/y", "connecting to github.com"),
        ("echo x >>.git/config", "writing "),
        ("cp a.txt /usr/local/bin/", "writing /usr/local/bin"),
    ],
)
def test_failed_commands_report_paths_and_hosts_out_of_reach(workspace: Path, code: str, words: str) -> None:
    (line,) = denials(workspace, code, exit_code=1)
    assert line.startswith("Probably blocked by the sandbox: ") and words in line


@pytest.mark.parametrize(
    "code", ["echo x >/tmp/y", "cat /etc/hosts", "curl http://localhost:8000", "rm -f /dev/null", "make test"]
)
def test_failed_commands_within_reach_are_not_denials(workspace: Path, code: str) -> None:
    assert denials(workspace, code, exit_code=1) == []


@pytest.mark.needs("node")
def test_every_language_reports_denials(inside: Inside) -> None:
    writing = "Blocked by the sandbox: writing /etc/denied"
    assert writing in inside.do("python", "open('/etc/denied', 'w')").text
    assert (
        writing
        in inside.do("python", "try:\n    open('/etc/denied', 'w')\nexcept OSError as e:\n    raise ValueError").text
    )
    assert writing in inside.do("javascript", "require('fs').writeFileSync('/etc/denied', '')").text
    assert writing in inside.do("javascript", "await require('fs/promises').writeFile('/etc/denied', '')").text
    assert "Probably b" + writing[1:] in inside.do("shell", "echo x >/etc/denied").text
    network = "a direct connection to the network"
    assert network in inside.do("python", "import socket; socket.create_connection(('93.184.216.34', 80), 3)").text
    assert network in inside.do("python", "import socket; socket.getaddrinfo('example.com', 80)").text
    assert network in inside.do("javascript", "await require('dns').promises.lookup('example.com')").text
    host = "Blocked by the sandbox: connecting to example.com"
    asking = "import urllib.request as u\ntry:\n    u.urlopen('https://example.com')\nexcept OSError:\n    pass"
    ran = inside.do("python", asking)
    assert host in ran.stderr and ran.ended == "done"
    assert "sandbox" not in inside.do("python", "print('quiet')").text


def test_a_denial_is_the_last_line_of_output(inside: Inside) -> None:
    ran = inside.do("python", "open('/etc/denied', 'w')")
    assert ran.chunks[-2]["content"].count("\n") == 1 and ran.chunks[-2]["stream"] == "stderr"
    assert ran.chunks[-1]["ended"] == "error"


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("touch: cannot touch '/opt/new': Read-only file system", "writing /opt/new"),
        ("bash: line 1: /etc/hosts: Read-only file system", "writing /etc/hosts"),
        ("OSError: [Errno 30] Read-only file system: '/opt/new'", "writing /opt/new"),
        ("ping: example.com: Temporary failure in name resolution", "a direct connection to the network"),
        ("cat: {home}/notes: No such file or directory", "reading {home}/notes"),
    ],
)
def test_successful_shell_blocks_report_denials_from_their_output(
    workspace: Path, home: Path, message: str, words: str
) -> None:
    (line,) = denials(workspace, "ignored | true", exit_code=0, output=f"before\n{message.format(home=home)}\nafter")
    assert line.startswith("Probably blocked by the sandbox: ") and words.format(home=home) in line


@pytest.mark.parametrize(
    "message",
    [
        "cat: missing: No such file or directory",
        "touch: cannot touch '{workspace}/x': Read-only file system?",
        "all is well",
        "Read-only file system",
        "A Read-only file system is mounted at /etc today",
        "Read-only file system: /etc/passwd",
    ],
)
def test_harmless_shell_output_is_not_a_denial(workspace: Path, message: str) -> None:
    assert denials(workspace, "true", exit_code=0, output=message.format(workspace=workspace)) == []


def test_a_denial_inside_a_successful_pipeline_is_reported(inside: Inside) -> None:
    ran = inside.do("shell", "touch /etc/denied | cat; echo on")
    assert ran.ended == "done" and "Probably blocked by the sandbox: writing /etc/denied" in ran.text


def test_a_fixed_sandbox_offers_no_requests(workspace: Path) -> None:
    sandbox = Sandbox("workspace", str(workspace), fixed=True)
    (denial,) = blocked(sandbox, places(sandbox, [], []), EndedBlock("", errors=error(errno.EROFS, "/etc/hosts")), ())
    assert "needs:" not in str(denial)


@pytest.mark.parametrize(
    "code", ["open('/etc/none_such', 'w')", "open(__import__('os').path.expanduser('~/.ssh/key'))"]
)
def test_denials_offer_no_request_that_a_rule_would_refuse(inside: Inside, code: str) -> None:
    """A rule protects /etc and keys, so a request would always be refused."""
    output = inside.do("python", code).text
    assert "locked by the sandbox: " in output and "needs:" not in output


@pytest.mark.parametrize(
    "message", ["touch: cannot touch 'a b': Read-only file system", "sh: 1: a b: Read-only file system"]
)
def test_relative_paths_are_resolved_in_the_working_directory(workspace: Path, message: str) -> None:
    (line,) = denials(workspace, exit_code=0, output=message, kind="read-only")
    assert f"writing {workspace}/a b." in line
    (line,) = denials(workspace, exit_code=0, output=message, cwd="/opt")
    assert "writing /opt/a b." in line
    (line,) = denials(workspace, errors=error(errno.EROFS, "x"), cwd="/opt")
    assert line.startswith("Blocked by the sandbox: writing /opt/x.")


def test_denials_use_the_directory_the_block_changed_to(inside: Inside) -> None:
    assert "the sandbox: writing /etc/new." in inside.do("python", "import os; os.chdir('/etc'); open('new', 'w')").text
    assert "the sandbox: writing /usr/new." in inside.do("shell", "cd /usr && touch new").text
