"""Exact commits: what the session changed, and nothing else; the user's files, index and hunks stay theirs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interpreter import OpenInterpreter
from interpreter.errors import SandboxUnavailableError
from interpreter.questions import Answer, Question
from interpreter.repo.ci import since
from interpreter.repo.commit import MakeCommit, plan_commit, suggested_message
from interpreter.repo.git import COMMANDS, GitError, Repository
from interpreter.session import Block
from model_server import ModelServer, text, tool_call
from repo.repositories import files_of, git, make_repository, shell, state

pytestmark = pytest.mark.needs("git")

BLOCK = """
import os
from pathlib import Path
one = Path('one.txt')
one.write_bytes(one.read_bytes().replace(b'line 8', b'line 8, session'))
Path('made.py').write_text('session = 1\\n')
"""
# What the user has done before: a shell script in the folder of the repository.
DIRTY = [
    "true",
    "git stash drop -q",
    "git reset -q --hard",
    "git add -A",
    "echo mine >> one.txt",
    "sed -i '1s/^/mine /' one.txt",
    "sed -i '1s/^/mine /' one.txt; git add one.txt; echo mine >> one.txt",
    "git add -p two.txt < /dev/null; git add two.txt",
    "git rm -q --cached two.txt",
    "rm two.txt",
    "git rm -qf two.txt",
    "git mv two.txt moved.txt",
    "chmod +x one.txt",
    "chmod +x two.txt; git add two.txt",
    "ln -s one.txt link; git add link",
    "mkdir -p deep/er; echo mine > deep/er/file; git add deep",
    "echo '*.log' > .gitignore; echo mine > a.log",
    "echo '*.log' > .gitignore; git add .gitignore; echo mine > a.log",
    "echo mine > 'name with space'; git add 'name with space'",
    "printf 'mine\\r\\n' > crlf.txt; git add crlf.txt; printf 'mine\\r\\nmine\\r\\n' > crlf.txt",
    "printf 'mine\\0binary' > data.bin; git add data.bin; printf 'mine\\0\\1' > data.bin",
    "git checkout -q --detach",
    "git checkout -q -b feature",
    "git reset -q --hard; git checkout -q other; echo mine >> one.txt",
    "git update-index --assume-unchanged two.txt",
    "git add -N new.txt",
    "git config core.autocrlf input",
    "git config core.fsmonitor /bin/false",
    "git gc -q",
    "git pack-refs --all",
    "git tag -a v3 -m three; git branch -q topic; touch one.txt two.txt three.txt",
    "git -c core.quotepath=off add -A; echo mine > 'öl.txt'; git add 'öl.txt'",
]


@pytest.fixture
def session(tmp_path: Path) -> Iterator[OpenInterpreter]:
    made = start(make_repository(tmp_path / "work"))
    yield made
    made.computer.terminate()


def start(folder: Path, **settings: Any) -> OpenInterpreter:
    return OpenInterpreter(workspace=str(folder), auto_run=True, **settings)


def run(session: OpenInterpreter, code: str, language: str = "python") -> None:
    """Run a block."""
    for _ in session.session.perform(Block(language, code), session.agent.actor):
        pass


def commit(session: OpenInterpreter, message: str = "By the session", own: bool = True) -> Any:
    """Commit; outside of a turn, a block counts as the user's own."""
    return session.session.perform(MakeCommit(session.agent, message, own), session.user).result()


def bytes_and_modes(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(folder)): (path.lstat().st_mode, path.read_bytes() if path.exists() else b"")
        for path in [*files_of(folder), *(path for path in folder.iterdir() if path.is_symlink())]
    }


def changed(diff: str) -> list[str]:
    return [line for line in diff.splitlines() if line[:1] in ("+", "-") and line[:3] not in ("+++", "---")]


def check_exact(folder: Path, before: dict[str, str]) -> None:
    """What was committed is the session's, and what is left is the user's."""
    shown = changed(git(folder, "show", "--format=", "HEAD"))
    assert shown == ["+session = 1", "-one.txt line 8", "+one.txt line 8, session"]
    left, staged = git(folder, "diff", "HEAD"), git(folder, "diff", "--cached")
    assert not [line for line in changed(left) + changed(staged) if "session" in line]
    assert sorted(changed(staged)) == sorted(changed(before["staged"]))
    assert sorted(changed(left)) == sorted(changed(before["left"]))
    assert git(folder, "fsck", "--no-dangling") == ""


@pytest.mark.full
@pytest.mark.parametrize("script", DIRTY)
def test_a_dirty_state_is_byte_identical_after_a_commit(session: OpenInterpreter, script: str) -> None:
    folder = Path(session.workspace)
    shell(folder, script)
    before = {"left": git(folder, "diff", "HEAD"), "staged": git(folder, "diff", "--cached")}
    others = git(folder, "status", "--porcelain=v1", "--", ":!one.txt", ":!made.py")
    run(session, BLOCK)
    files = bytes_and_modes(folder)
    commit(session)
    assert bytes_and_modes(folder) == files
    check_exact(folder, before)
    assert git(folder, "status", "--porcelain=v1", "--", ":!one.txt", ":!made.py") == others
    assert git(folder, "log", "-1", "--format=%an <%ae> %s") == "Ada <ada@example.org> By the session\n"


def test_a_hunk_of_the_user_in_the_same_file_stays_uncommitted(session: OpenInterpreter) -> None:
    folder = Path(session.workspace)
    before = {"left": git(folder, "diff", "HEAD"), "staged": git(folder, "diff", "--cached")}
    assert "staged" in before["staged"] and "mine" in before["left"]
    run(session, BLOCK)
    made = commit(session)
    check_exact(folder, before)
    assert str(made) == f"Committed 2 files to main: {git(folder, 'rev-parse', 'HEAD')[:7]} By the session"
    assert git(folder, "reflog", "-1", "--format=%gs") == "commit: By the session\n"
    with pytest.raises(GitError, match="Nothing to commit"):
        commit(session)
    run(session, "open('made.py', 'a').write('session = 2\\n')")
    assert commit(session, "Second").paths == ("made.py",)


def test_a_commit_is_undone_like_any_step(session: OpenInterpreter) -> None:
    folder = Path(session.workspace)
    head = git(folder, "rev-parse", "HEAD")
    run(session, BLOCK)
    files = bytes_and_modes(folder)
    commit(session)
    session.undo(blocks=True)
    assert git(folder, "rev-parse", "HEAD") == head and bytes_and_modes(folder) == files
    assert len(commit(session).paths) == 2


def test_changes_in_the_same_lines_are_refused(session: OpenInterpreter) -> None:
    folder = Path(session.workspace)
    one = folder / "one.txt"
    one.write_text(one.read_text().replace("line 8", "line 8, mine"))
    run(session, BLOCK)
    with pytest.raises(GitError, match=r"In one\.txt, your own changes and those of the session are in the same lines"):
        commit(session)


def test_blocks_of_the_user_are_committed_only_on_request(session: OpenInterpreter) -> None:
    session.computer.run("python", "open('own.txt', 'w').write('own')")
    with pytest.raises(GitError, match="only blocks that you ran yourself"):
        commit(session, own=False)
    assert commit(session).paths == ("own.txt",)


SPECIAL = [
    ("git reset -q --hard; git checkout -q other; echo x > two.txt; git commit -qam x; git merge -q main", "A merge is in progress"),
    ("git reset -q --hard; git checkout -q other; echo x > two.txt; git commit -qam x; git rebase -q main", "A rebase is in progress"),
    ("touch .git/index.lock", "git is running in this repository"),
    ("git config --unset user.name; git config --unset user.email", "git doesn't know who you are"),
    ("git config commit.gpgsign true", "commit.gpgsign is on"),
    ("rm -rf .git", "is in no git repository"),
    ("printf '#!/bin/sh\\necho too long; exit 1\\n' > .git/hooks/commit-msg; chmod +x .git/hooks/commit-msg", "a hook of the repository refused it:\ntoo long"),
    ("printf '#!/bin/sh\\ngit add new.txt\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit", "a hook changed what would be committed. Run the hook in a block"),
]  # fmt: skip


@pytest.mark.parametrize(("script", "message"), SPECIAL)
def test_a_special_state_has_its_message(
    session: OpenInterpreter, script: str, message: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GIT_AUTHOR_NAME", raising=False)
    monkeypatch.delenv("GIT_AUTHOR_EMAIL", raising=False)
    folder = Path(session.workspace)
    shell(folder, script)
    run(session, "open('made.py', 'w').write('session = 1')")
    head = git(folder, "rev-parse", "HEAD", check=False)
    with pytest.raises(GitError, match=message.replace("(", r"\(").replace(".", r"\.")):
        commit(session)
    assert git(folder, "rev-parse", "HEAD", check=False) == head


def test_hooks_run_in_the_session_and_may_change_the_message(session: OpenInterpreter) -> None:
    folder = Path(session.workspace)
    hook = folder / ".git/hooks/commit-msg"
    hook.write_text('#!/bin/sh\nsed -i \'s/^/PEN-1: /\' "$1"\ngit diff --cached --name-only > "$HOME/seen"\n')
    hook.chmod(0o755)
    run(session, BLOCK)
    commit(session)
    assert git(folder, "log", "-1", "--format=%s") == "PEN-1: By the session\n"
    assert Path(os.path.expanduser("~/seen")).read_text() == "made.py\none.txt\n"


def test_detached_worktree_shallow_and_unborn_repositories_work(tmp_path: Path, session: OpenInterpreter) -> None:
    folder = Path(session.workspace)
    git(folder, "worktree", "add", "-q", "-b", "linked", str(tmp_path / "linked"))
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{folder}", "shallow")
    (tmp_path / "empty").mkdir()
    git(tmp_path / "empty", "init", "-q")
    for name in ("linked", "shallow", "empty"):
        for key, value in (("name", "Ada"), ("email", "ada@example.org")):
            git(tmp_path / name, "config", f"user.{key}", value)
        other = start(tmp_path / name)
        try:
            run(other, "open('made.py', 'w').write('session = 1\\n')")
            assert commit(other, f"In {name}").paths == ("made.py",)
        finally:
            other.computer.terminate()
        assert git(tmp_path / name, "log", "-1", "--format=%s") == f"In {name}\n"
        assert git(tmp_path / name, "status", "--porcelain") == ""
    assert git(folder, "log", "-1", "--format=%s", "linked") == "In linked\n"
    git(folder, "checkout", "-q", "--detach")
    run(session, BLOCK)
    assert "`git switch -c NAME` makes one of it." in str(commit(session))
    assert git(folder, "fsck", "--no-dangling") == ""


def test_secrets_large_files_submodules_and_ignored_files_are_left_out(session: OpenInterpreter) -> None:
    folder = Path(session.workspace)
    (folder / "lib").mkdir()
    git(folder / "lib", "init", "-q")
    (folder / ".gitignore").write_text("*.log\n")
    (folder / ".gitattributes").write_text("*.psd filter=lfs\n")
    key = "sk-proj-" + "a1B2c3D4" * 6
    run(
        session,
        f"""
for name, data in {{'ok.txt': 'fine', 'key.txt': 'key = "{key}"', '.env': 'A=1', 'big.csv': 'x' * 6_000_000,
                    'a.log': 'log', 'lib/x.c': 'x', 'a.psd': 'x'}}.items():
    open(name, 'w').write(data)""",
    )
    made = commit(session)
    assert made.paths == ("ok.txt",)
    assert {path: why.split(" (")[0] for path, why in made.left_out.items()} == {
        "key.txt": "which contains a secret", ".env": "whose name says that it holds secrets", "big.csv": "a large file",
        "a.log": "which .gitignore names", "lib/x.c": "which belongs to a submodule or another repository",
        "a.psd": "which goes through the filter lfs, so only git can commit it",
    }  # fmt: skip


def test_hostile_settings_run_nothing(session: OpenInterpreter, tmp_path: Path) -> None:
    folder = Path(session.workspace)
    ran = tmp_path / "ran"
    program = folder / "evil.sh"
    program.write_text(f'#!/bin/sh\necho "$0 $*" >> {ran}\ncat\n')
    program.chmod(0o755)
    for name in (
        "core.fsmonitor", "core.hooksPath", "core.sshCommand", "core.pager", "core.editor", "gpg.program", "filter.evil.clean",
        "filter.evil.smudge", "filter.evil.process", "diff.evil.textconv", "diff.external", "merge.evil.driver", "credential.helper",
        "core.alternateRefsCommand", "uploadpack.packObjectsHook", "alias.cat-file", "core.gitProxy", "include.path",
    ):  # fmt: skip
        git(folder, "config", name, str(program if name != "core.hooksPath" else tmp_path / "nothing"))
    (folder / ".gitattributes").write_text("*.py filter=evil diff=evil merge=evil\n*.txt diff=evil merge=evil\n")
    for hook in ("post-index-change", "reference-transaction", "post-commit", "prepare-commit-msg", "pre-auto-gc"):
        (folder / ".git/hooks" / hook).write_text(program.read_text())
        (folder / ".git/hooks" / hook).chmod(0o755)
    run(session, "p = 'one.txt'\ns = open(p).read().replace('line 8', 'line 8, session')\nopen(p, 'w').write(s)")
    assert "+one.txt line 8, session" in "".join(since(session, "HEAD")) and not ran.exists()
    assert commit(session).paths == ("one.txt",)
    plan = Repository(str(folder))
    assert plan.branch == "main" and not ran.exists()


def test_only_listed_commands_of_git_run_on_the_host(session: OpenInterpreter) -> None:
    with Repository(session.workspace).scratch() as scratch:
        for command in ("status", "diff", "commit", "add", "fetch", "stash", "gc", "submodule"):
            assert command not in COMMANDS
            with pytest.raises(GitError, match="is not run on the host"):
                scratch.run(command)


def test_a_session_in_a_sandbox_commits_and_its_hooks_stay_inside(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "work")
    outside = tmp_path / "outside"
    hook = folder / ".git/hooks/pre-commit"
    hook.write_text(f"#!/bin/sh\necho x > {outside}\nexit 0\n")
    hook.chmod(0o755)
    session = start(folder, sandbox="workspace")
    try:
        session.computer.runtimes.apply_sandbox()
        run(session, "open('made.py', 'w').write('session = 1\\n')")
        assert commit(session).paths == ("made.py",)
    except SandboxUnavailableError as error:
        pytest.skip(str(error))
    finally:
        session.computer.terminate()
    assert git(folder, "show", "HEAD:made.py") == "session = 1\n" and not outside.exists()


def test_the_model_commits_with_its_tool_and_writes_a_message(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "work")
    replies = [
        tool_call("python", BLOCK),
        tool_call(name="commit", arguments='{"message": "Price: fix"}'),
        text("Done."),
        text('"Price: again"'),
    ]
    with ModelServer(replies) as server:
        session = start(folder)
        session.llm.model, session.llm.api_base, session.llm.api_key = "gpt-4o", server.base_url, "key"
        try:
            session.chat("Fix it and commit", display=False)
            assert git(folder, "log", "-1", "--format=%s") == "Price: fix\n"
            run(session, "open('made.py', 'a').write('more = 1\\n')")
            assert suggested_message(session.agent, plan_commit(session.agent, own=True)) == "Price: again"
            asked = str(server.requests[-1])
            assert "Two: add a line" in asked and "+more = 1" in asked
        finally:
            session.computer.terminate()


# What the model runs after its change of one.txt and made.py, and the user's files that it would commit, too.
BY_GIT = [
    ("git add -A && git commit -qm all", "new.txt, one.txt, two.txt"),
    ("git commit -qam 'all of it'", "one.txt, two.txt"),
    ("git add made.py && git commit -qm made", "one.txt"),  # the user has staged it
    ("git reset -q && git add made.py && git commit -qm made", ""),
    ("git add -N made.py && git commit -qm made made.py", ""),
    ("cd . && git add -- made.py two.txt; git commit -qm x two.txt", "two.txt"),
    ("git status; git log -1", ""),
    ("git stash -q; git commit -q --allow-empty -m empty", ""),
]


def chat(session: OpenInterpreter, *blocks: tuple[str, str]) -> str:
    """Let the model run blocks, and return what it then reads."""
    with ModelServer([*(tool_call(*block) for block in blocks), text("Done.")]) as server:
        session.llm.model, session.llm.api_base, session.llm.api_key = "gpt-4o", server.base_url, "key"
        session.chat("Go on", display=False)
        return str(server.requests[-1].body)


@pytest.mark.parametrize(("command", "names"), BY_GIT)
def test_git_in_a_block_does_not_sweep_in_changes_of_the_user(
    session: OpenInterpreter, command: str, names: str
) -> None:
    folder = Path(session.workspace)
    chat(session, ("python", BLOCK))
    before = state(folder)
    read = chat(session, ("shell", command))
    if names:
        assert f"changes in {names} that this session did not make" in read
        assert state(folder) == before
        assert commit(session, own=False).paths == ("made.py", "one.txt")
        chat(session, ("shell", "git add -A && git commit -qm rest"))  # nothing of the session is left: as asked
        assert git(folder, "status", "--porcelain") == ""
    else:
        assert "that this session did not make" not in read
        assert state(folder) != before or "status" in command


def test_one_block_that_edits_and_commits_is_no_exception(session: OpenInterpreter) -> None:
    folder = Path(session.workspace)
    at_once = "shell", "echo more > made.py && git add -A && git commit -qm all"
    assert "that this session did not make" in chat(session, at_once)
    assert not (folder / "made.py").exists()
    shell(folder, "git reset -q --hard; rm new.txt")
    chat(session, at_once)
    assert git(folder, "log", "-1", "--format=%s") == "all\n"


def test_the_card_names_the_changes_that_a_commit_would_take_in(session: OpenInterpreter) -> None:
    chat(session, ("python", BLOCK))
    session.auto_run = False
    shown: list[Question] = []

    def answer(question: Question) -> Answer:
        shown.append(question)
        return Answer("approve")

    with session.session.questions.answerable({"block"}, answer):
        chat(session, ("shell", "git commit -qam all"))
    assert "Also commits your changes in one.txt, two.txt" in (shown[0].subject.effects or ())
    assert git(Path(session.workspace), "log", "-1", "--format=%s") == "all\n"
