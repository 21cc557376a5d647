"""Rules: what they match, and which of them wins."""

from __future__ import annotations

import os
import pwd
from dataclasses import replace
from pathlib import Path

import pytest

from interpreter.policy import Policy, Rule
from interpreter.policy.analysis import analyze
from interpreter.policy.rules import holds_in, propose_rule
from policy.analyzed_effects import WORKSPACE


def verdict(code: str, *rules: Rule, language: str = "shell") -> str:
    return Policy(WORKSPACE, rules).judge(language, code).decision


def test_the_strictest_rule_wins_in_any_order() -> None:
    allow, ask, deny = (Rule(decision, command=("git",)) for decision in ("allow", "ask", "deny"))
    assert verdict("git push", allow, deny, ask) == "deny"
    assert verdict("git push", deny, allow) == "deny"
    assert verdict("git push", ask, allow) == "ask"
    assert verdict("git push", allow) == "allow"
    assert verdict("git push") == "ask"


def test_a_block_is_judged_command_by_command() -> None:
    rules = Rule("allow", command=("ls", "cd")), Rule("deny", command=("tee",), reason="No tee.")
    found = Policy(WORKSPACE, rules).judge("shell", "cd x && rm -rf y | tee z; ls")
    assert [(part.text, part.decision) for part in found.parts] == [
        ("cd x", "allow"), ("rm -rf y", "ask"), ("tee z", "deny"), ("ls", "allow"),
    ]  # fmt: skip
    assert (found.decision, found.reason, found.rules) == ("deny", "No tee.", (rules[1],))


@pytest.mark.parametrize(
    ("command", "code", "matches"),
    [
        ("git push", "git push origin", True),
        ("git push", "git pushx", False),
        ("git push", "git -C x push", False),
        ("git", "/usr/bin/git log", True),
        ("npm run *", "npm run build", True),
        ("npm run *", "npm run", False),
        ("mkfs.*", "mkfs.ext4 x", True),
        ("'my program' go", "'my program' go", True),
        ("rm", "sudo rm x", True),
        ("rm", "bash -c 'rm x'", True),
        ("rm", "echo rm", False),
        ("rm", "env X=1 rm a", True),
        ("rm", "ls | xargs rm", True),
        ("rm", "find . -exec rm {} +", True),
        ("rm", "alias x='rm a'", True),
        ("rm", "echo rm a | sh", True),
        ("rm", "cat <<END | tee log | sh\nrm a\nEND", False),
        ("rm", "cat <<END | sh\nrm a\nEND", True),
        ("rm", "/tmp/rm a", True),
    ],
)
def test_commands_match_by_leading_words(command: str, code: str, matches: bool) -> None:
    assert (verdict(code, Rule("deny", command=(command,))) == "deny") == matches


@pytest.mark.parametrize(
    ("path", "code", "matches"),
    [
        ("out/*", "touch out/a", True),
        ("out/*", "touch out/a/b", False),
        ("out/**", "touch out/a/b", True),
        ("out/**", "rm -rf out", True),
        ("out/**", "rm -rf o*", True),
        ("out/**", "rm -f o*", False),
        ("out/**", "touch o?t/a", True),
        ("out/**", "touch $X/a", False),
        ("out/a", "touch out/$X", False),
        ("out/**", "touch p*/a", False),
        ("out/**", "touch outer", False),
        ("out/keep.txt", "rm -rf out", True),  # deleted with its folder
        ("out/keep.txt", "rm -rf .", True),
        ("out/keep.txt", "rm out/other", False),
        ("{workspace}/a", "touch ./b/../a", True),
        ("/etc/**", "cp x /etc/y", True),
        ("~/x", 'touch "$HOME/x"', True),
        ("**/*.db", "rm a/b/c.db", True),
        ("a?c", "rm abc", True),
        ("[ab]", "rm b", True),
        ("[!ab]", "rm b", False),
    ],
)
def test_path_patterns(path: str, code: str, matches: bool) -> None:
    assert (verdict(code, Rule("deny", path=(path,))) == "deny") == matches


def test_hosts_match_with_their_subdomains() -> None:
    rule = Rule("deny", host=("example.com",))
    assert verdict("curl https://api.example.com/x", rule) == "deny"
    assert verdict("curl https://example.com", rule) == "deny"
    assert verdict("curl https://notexample.com", rule) == "ask"
    assert verdict("curl $URL", rule) == "ask"
    assert verdict("curl $URL", Rule("deny", host=("*",))) == "deny"


def test_an_allow_rule_must_cover_every_effect() -> None:
    rule = Rule("allow", does=("read", "write"), path=("out/**",))
    assert verdict("cp out/a out/b", rule) == "allow"
    assert verdict("cp out/a b", rule) == "ask"
    assert verdict("rm out/a", rule) == "ask"
    assert verdict("cp out/a out/$X", rule) == "ask"
    assert verdict("cp out/a out/b && curl https://a.example", rule) == "ask"
    assert verdict("open('out/x', 'w').write('a')", rule, language="python") == "allow"
    assert verdict("open('x', 'w').write('a')", rule, language="python") == "ask"
    assert verdict("open('out/../x', 'w')", rule, language="python") == "ask"


def test_an_allowed_command_does_not_allow_redirections_or_substitutions() -> None:
    rule = Rule("allow", command=("git status", "echo"))
    assert verdict("git status", rule) == "allow"
    assert verdict("git status > /etc/motd", rule) == "ask"
    assert verdict("echo $(rm x)", rule) == "ask"
    assert verdict("git status; make", rule) == "ask"
    assert verdict("git status $X", rule) == "ask"
    assert verdict("LD_PRELOAD=x git status", rule) == "ask"
    assert verdict("git status 'not closed", rule) == "ask"
    assert verdict("subprocess.run(['git', 'status'])", rule, language="python") == "ask"


def test_unknown_code_asks_even_if_the_language_is_allowed() -> None:
    assert verdict("touch 'anything at all'", Rule("allow", language=("shell",))) == "allow"
    assert verdict("anything", Rule("allow", language=("shell",))) == "ask"
    assert verdict("anything", Rule("allow", does=("program", "unknown"))) == "ask"
    assert verdict("anything", Rule("allow", command=("anything",))) == "allow"
    assert verdict("anything 'at all", Rule("allow", language=("shell",))) == "ask"
    assert verdict("def f(:", Rule("allow", language=("python",)), language="python") == "ask"


def test_a_rule_about_effects_applies_to_every_language() -> None:
    rule = Rule("deny", does=("send",))
    assert verdict("requests.post('https://a.example')", rule, language="python") == "deny"
    assert verdict("curl -d x https://a.example", rule) == "deny"
    assert verdict("axios.post('https://a.example')", rule, language="javascript") == "deny"
    assert verdict("requests.get('https://a.example')", rule, language="python") == "ask"


def test_a_rule_can_be_limited_to_one_folder(tmp_path: object) -> None:
    rule = Rule("allow", command=("ls",), folder=WORKSPACE)
    assert holds_in(rule.folder, WORKSPACE) and holds_in(rule.folder, f"{WORKSPACE}/sub")
    assert not holds_in(rule.folder, "/work") and not holds_in(rule.folder, f"{WORKSPACE}s")


def test_a_verdict_says_whether_a_rule_asked() -> None:
    policy = Policy(WORKSPACE, (Rule("ask", command=("git push",), reason="Look first."),))
    assert (policy.judge("shell", "make; git push").by_rule, policy.judge("shell", "make").by_rule) == (True, False)
    assert policy.judge("shell", "make; git push").reason == "Look first."


def test_effects_can_be_passed_in() -> None:
    effects = analyze("shell", "rm x", WORKSPACE)
    policy = Policy(WORKSPACE, (Rule("deny", does=("delete",)),))
    assert policy.judge("shell", "rm x", effects) == policy.judge("shell", "rm x")


@pytest.mark.parametrize(
    ("code", "allowed"),
    [("ls", True), ("/bin/ls", True), ("./ls", False), ("/tmp/ls", False), ("/bin/../tmp/ls", False)],
)
def test_a_program_name_allows_only_the_systems_program(code: str, allowed: bool) -> None:
    assert (verdict(code, Rule("allow", command=("ls",))) == "allow") == allowed


@pytest.mark.parametrize("code", ["cat {home}/.ssh/id_ed25519", "cat ~{user}/.ssh/id_ed25519", "rm -rf ~{user}"])
def test_the_accounts_home_is_protected_even_if_home_differs(code: str) -> None:
    account = pwd.getpwuid(os.getuid())
    code = code.format(home=account.pw_dir, user=account.pw_name)
    assert os.path.realpath(account.pw_dir) != os.path.realpath(os.path.expanduser("~"))
    policy = Policy.load(WORKSPACE)
    assert policy.judge("shell", code).decision == "deny"
    allowed = replace(policy, rules=(Rule("allow", path=("~/**",)),))
    assert allowed.judge("shell", code).decision == "ask"  # the rule covers only $HOME


@pytest.mark.parametrize(
    ("language", "code", "sentence"),
    [
        (
            "python",
            "open('b.txt', 'w').write(open('a.txt').read())",
            "Always allow reading and writing b.txt and a.txt, in python code.",
        ),
        ("python", "print(1)", "Always allow python code that changes nothing."),
        (
            "shell",
            "cat a.txt; git status",
            "Always allow the commands cat and git status, reading a.txt.",
        ),
        ("shell", "echo hi > a.txt", "Always allow writing a.txt, in shell code."),
        ("shell", "rm sub/a.txt", "Always allow the command rm, deleting sub/a.txt."),
        (
            "python",
            "import urllib.request; urllib.request.urlopen('https://example.org/x')",
            "Always allow downloading from example.org, in python code.",
        ),
    ],
)
def test_a_proposed_rule_reads_as_a_sentence(tmp_path: Path, language: str, code: str, sentence: str) -> None:
    rule = propose_rule(language, code, workspace=str(tmp_path))
    assert rule is not None
    assert rule.sentence == f"{sentence} This applies when you work in {tmp_path}."


def test_a_proposed_rule_takes_a_bracket_in_a_name_as_a_letter(tmp_path: Path) -> None:
    rule = propose_rule("python", "open('a[1].txt', 'w')", workspace=str(tmp_path))
    assert rule is not None and "writing a[1].txt," in rule.sentence
    decisions = [
        Policy(str(tmp_path), (rule,)).judge("python", f"open('{name}', 'w')").decision
        for name in ("a[1].txt", "a1.txt")
    ]
    assert decisions == ["allow", "ask"]
