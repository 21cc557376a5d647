"""Static analysis returns effects, and the rules a verdict, for any text."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from interpreter.policy.analysis import FAILED, analyze, reversibility
from interpreter.policy.policy import Policy, builtin
from policy.analyzed_effects import WORKSPACE
from policy.commands_table import rows

LANGUAGES = ("python", "shell", "javascript", "ruby")
RULES = builtin().rules
PIECES = (
    "rm -rf / $X \" ' ` $( ) ( { } | && ; \n << EOF > < f() x= os. remove exec eval ! % %% bash \0 é * ~ .. for in do done if "
    "then fi case esac lambda def class \"\"\" f\"{ Path open subprocess.run [ ] , https:// git push find -exec xargs sudo curl sed -i "
    "python -c fs. `${ // /* */ require( \\ = : \t \r\n - -- async await with as getattr __import__ .execute( import"
).split(" ")  # fmt: skip
patchwork = st.lists(st.sampled_from(PIECES), max_size=40).map(" ".join)


def check(code: str) -> None:
    for language in LANGUAGES:
        effects = analyze(language, code, WORKSPACE)
        assert not any(FAILED in effect.what for effect in effects.all)
        assert len(effects.lines()) <= 6
        assert all("\n" not in line for line in effects.lines())
        assert all(1 <= effect.line <= code.count("\n") + 1 for effect in effects.all)
        assert reversibility(effects).kind in ("reversible", "partly", "not")
        assert Policy(WORKSPACE, RULES).judge(language, code, effects).decision in ("ask", "deny")


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=200))
@example("\ud800")
@example("a\0b")
def test_any_text_gets_effects_and_a_verdict(code: str) -> None:
    check(code)


@settings(max_examples=80, deadline=None)
@given(patchwork)
def test_any_mix_of_code_pieces_gets_effects_and_a_verdict(code: str) -> None:
    check(code)


@pytest.mark.full
@settings(max_examples=3000, deadline=None)
@given(patchwork | st.text())
def test_many_random_texts_get_effects_and_a_verdict(code: str) -> None:
    check(code)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([row.code for row in rows() if row.verdict == "deny" and "&" not in row.code[-1:]]), st.data())
def test_a_denied_command_stays_denied_among_other_code(code: str, data: st.DataObject) -> None:
    before = data.draw(
        st.sampled_from(["", "echo a; ", "cd sub && ", "ls | cat\n", "true || ", "( ", "if true; then ", "x=1\n"])
    )
    after = {"( ": " )", "if true; then ": "\nfi"}.get(before, data.draw(st.sampled_from(["", "\necho b", "\nls"])))
    assert Policy(WORKSPACE, RULES).judge("shell", before + code + after).decision == "deny"


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    "code", ["(" * 5000, "$(" * 5000, "[" * 5000, "a+" * 5000 + "a", "if x; then " * 1000, '"' * 5001, "not " * 5000 + "1"],
    ids=lambda code: code[:3],
)  # fmt: skip
def test_deep_nesting_does_not_crash(language: str, code: str) -> None:
    assert not any(FAILED in effect.what for effect in analyze(language, code, WORKSPACE).all)
