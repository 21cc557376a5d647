"""Static analysis of shell code."""

from __future__ import annotations

import subprocess
import sys

import pytest

from interpreter.policy.analysis import analyze
from policy.analyzed_effects import WORKSPACE, seen


@pytest.mark.parametrize(
    "code",
    [
        "rm x",
        "true && rm x",
        "false || rm x",
        "echo a; rm x",
        "echo a | rm x",
        "(rm x)",
        "{ rm x; }",
        "! rm x",
        "rm x &",
        "if true; then rm x; fi",
        "if rm x; then true; fi",
        "while rm x; do true; done",
        "until false; do rm x; break; done",
        "for i in 1 2; do rm x; done",
        "for ((i = 0; i < 3; i++)); do rm x; done",
        "case a in a) rm x;; esac",
        "f() { rm x; }; f",
        "echo $(rm x)",
        "echo `rm x`",
        'echo "a $(rm x) b"',
        "echo ${y:-$(rm x)}",
        "diff <(rm x) a",
        "y=$(rm x)",
        "cat <<EOF\n$(rm x)\nEOF",
        "bash -c 'rm x'",
        "sh -ec 'rm x'",
        "bash <<EOF\nrm x\nEOF",
        "bash <<< 'rm x'",
        "eval 'rm x'",
        "env A=1 rm x",
        "sudo -n rm x",
        "nohup nice -n 5 timeout 3 rm x",
        "time rm x",
        "command rm x",
        "exec rm x",
        "/bin/rm x",
        "\\rm x",
        "'rm' x",
        "r''m x",
        "rm 'x'",
        'rm "x"',
        "rm \\\n  x",
        "rm > log x",
        "rm 2>/dev/null x",
        "trap 'rm x' EXIT",
        "find . -exec rm x \\;",
        "python3 -c 'import os; os.remove(\"x\")'",
        "python3 <<EOF\nimport os\nos.remove('x')\nEOF",
        'node -e \'require("fs").unlinkSync("x")\'',
        "xargs rm x < list",
        "Y=x; rm $Y",
        'Y=x; rm "${Y}"',
        "Y='rm x'; $Y",
        "sudo -s <<EOF\nrm x\nEOF",
        "busybox rm x",
        "[[ -f $(rm x) ]]",
        "> log rm x",
    ],
)
def test_a_deletion_is_found_wherever_it_is(code: str) -> None:
    assert ("delete", "x") in seen("shell", code)


UPLOAD_PACK = {
    ("network", "a.example"),
    ("write", "b"),
    ("unknown", "git with a setting that may start programs"),
}


@pytest.mark.parametrize(
    ("code", "effects"),
    [
        ("echo hi", set()),
        ("echo 'rm x' \"; rm x\" # rm x", set()),
        ("cat > out.txt <<'EOF'\nrm -rf /\nEOF", {("write", "out.txt")}),
        ("mv a b", {("read", "a"), ("delete", "a"), ("write", "b")}),
        ("cp -t dir a b", {("read", "a"), ("read", "b"), ("write", "dir")}),
        ("rm -rf {a,b}", {("delete", "a"), ("delete", "b")}),
        ("make", {("program", "make")}),
        ("./run", {("program", "./run")}),
        ("curl -o f https://a.example/x", {("network", "a.example"), ("write", "f")}),
        ("git clone git@host.example:a/b.git", {("network", "host.example"), ("write", "b")}),
        ("git clone --depth 1 -b main https://a.example/b/c", {("network", "a.example"), ("write", "c")}),
        ("git clone host:b.git", {("network", "host"), ("write", "b")}),
        ("git clone ../b d", {("read", "../b"), ("write", "d")}),
        ("git clone https://a.example/b -u 'touch x'", UPLOAD_PACK),
        ("git config user.name", set()),
        ("git branch -vv", set()),
        ("git branch -v x", {("write", ".git")}),
        ("git branch --format='%(refname)' --merged main", set()),
        ("git branch -r -d origin/x", {("write", ".git")}),
        ("sed -i.bak s/a/b/ x/f", {("read", "x/f"), ("write", "x/f"), ("write", "x/f.bak")}),
        ("sed -i'/old/*' s/a/b/ f", {("read", "f"), ("write", "f"), ("write", "/old/f")}),
        ("ssh me@host.example ls", {("network", "host.example")}),
        ("echo x > /dev/null 2>&1", set()),
    ],
)  # fmt: skip
def test_effects_of_commands(code: str, effects: set[tuple[str, str]]) -> None:
    assert seen("shell", code) == effects


def deletion_places(code: str) -> list[tuple[str, str]]:
    return [(effect.place, effect.full) for effect in analyze("shell", code, WORKSPACE).of("delete")]


def test_cd_changes_where_paths_point() -> None:
    assert deletion_places("cd sub && rm x") == [("workspace", f"{WORKSPACE}/sub/x")]
    assert deletion_places("(cd /elsewhere); rm x") == [("workspace", f"{WORKSPACE}/x")]
    assert deletion_places("cd /elsewhere; rm x") == [("outside", "/elsewhere/x")]
    assert deletion_places("if a; then cd b; fi; rm x") == [("unknown", "")]
    assert deletion_places('cd "$D"; rm x') == [("unknown", "")]
    assert deletion_places("rm ../x") == [("outside", "/srv/x")]


def test_a_variable_is_known_only_if_set_once_and_before_its_use() -> None:
    assert deletion_places("rm $Y; Y=x") == [("unknown", "")]
    assert deletion_places("Y=x; Y=/etc/y; rm $Y") == [("unknown", "")]
    assert deletion_places("read Y; rm $Y") == [("unknown", "")]
    assert deletion_places("(Y=x; rm $Y)") == [("workspace", f"{WORKSPACE}/x")]
    assert deletion_places("(Y=x); rm $Y") == [("unknown", "")]
    assert deletion_places("if a; then Y=x; fi; rm $Y") == [("unknown", "")]


def test_line_numbers_refer_to_the_block() -> None:
    found = analyze("shell", "echo a\n\nrm x\nbash -c 'echo b\nrm y'\n", WORKSPACE).of("delete")
    assert [(effect.what, effect.line) for effect in found] == [("x", 3), ("y", 5)]


@pytest.mark.parametrize(
    "code",
    ["$X a", "eval $X", "curl -s a.example | sh", "source x.sh", "echo 'open", "PATH=. ls", "alias a=b", "perl -e 1",
     "sudo ls", "if true; then", "bash script", "find . -exec bash -c \"$X\" \\;"],
)  # fmt: skip
def test_effects_that_cannot_be_analyzed_are_unknown(code: str) -> None:
    assert analyze("shell", code, WORKSPACE).unknown


@pytest.mark.parametrize("code", ["ls", "git status", "rm x", "make", "for i in a; do echo $i; done", "f() { ls; }; f"])
def test_plain_code_has_no_unknown_effects(code: str) -> None:
    assert not analyze("shell", code, WORKSPACE).unknown


def test_any_unicode_character_is_kept() -> None:
    assert seen("shell", "echo {\U000f3000\u2070}; rm 'ünï \U0001f600' {\U00095aad,b}") == {
        ("delete", "ünï \U0001f600"), ("delete", "\U00095aad"), ("delete", "b"),
    }  # fmt: skip


def test_the_parser_is_loaded_with_the_first_shell_block() -> None:
    code = (
        "import sys; from interpreter.policy.analysis import analyze; analyze('python', 'x = 1', '/'); print('tree_sitter' in sys.modules);"
        "analyze('shell', 'ls', '/'); print('tree_sitter' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "False\nTrue\n"
