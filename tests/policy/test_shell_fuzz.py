"""The analysis of any shell code ends quickly and without an exception."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpreter.policy.analysis import FAILED, analyze
from interpreter.policy.analysis.tables import programs
from policy.analyzed_effects import WORKSPACE
from policy.corpus import snippets

SECONDS = 5.0
NAMES = sorted(programs())
PIECES = (
    "a b.txt -rf --x=y -- - /etc/../x ~ $X ${Y:-z} '*' \"q {a,b} [a-z]* \\; + \n 2>&1 > < <<< >> | & && || ; ( ) { } ! $( ` "
    "' \" \\ <<E\n \nE\n $(( )) [[ ]] = # \0 \u2028 \U0001f600 \r"
)
WORDS = st.sampled_from(PIECES.split(" "))
SIMPLE = st.tuples(st.sampled_from(NAMES), st.lists(WORDS, max_size=6)).map(lambda each: " ".join([each[0], *each[1]]))
JOINING = (
    "{} && {}",
    "{}; {}",
    "{} | {}",
    "if {}; then {}; fi",
    "for i in {}; do {}; done",
    "f() {{ {}; }}; {}",
    "x=$({}) {}",
)
COMMANDS = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(JOINING), inner, inner).map(lambda each: each[0].format(*each[1:])),
        st.tuples(st.sampled_from(["$({})", "({})", "bash -c '{}'", "eval {}", "<({})", '"{}"', "`{}`"]), inner).map(
            lambda each: each[0].format(each[1])
        ),
    ),
    max_leaves=8,
)
REAL = [snippet.code for snippet in snippets() if snippet.language == "shell"]


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A real snippet with something removed, inserted or doubled."""
    code = draw(st.sampled_from(REAL))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(code)))
        end = draw(st.integers(start, min(len(code), start + 12)))
        code = code[:start] + draw(st.one_of(st.just(""), WORDS, st.just(code[start:end] * 2), SIMPLE)) + code[end:]
    return code


def check(code: str) -> None:
    start = time.process_time()
    found = analyze("shell", code, WORKSPACE)
    assert time.process_time() - start < SECONDS, code
    assert not any(FAILED in effect.what for effect in found.all), code
    assert all(1 <= effect.line <= code.count("\n") + 1 for effect in found.all), code
    found.lines()


@settings(max_examples=150, deadline=None)
@given(COMMANDS | mutated())
def test_random_shell_code_is_analyzed_quickly(code: str) -> None:
    check(code)


@pytest.mark.full
@pytest.mark.timeout(400)
@settings(max_examples=20_000, deadline=None)
@given(COMMANDS | mutated() | st.text(max_size=300))
def test_much_random_shell_code_is_analyzed_quickly(code: str) -> None:
    check(code)


@pytest.mark.parametrize(
    "piece",
    [
        "$(",
        "`a ",
        "((",
        "{a,b}",
        "${x:-",
        "<(",
        "a|",
        "a;",
        "a && ",
        "if a; then ",
        "'",
        '"',
        "<<E\n",
        "\\\n",
        "[[ a ",
        "case a in ",
    ],
)
@pytest.mark.parametrize("length", [25_000, pytest.param(100_000, marks=pytest.mark.full)])
def test_long_repetitions_are_analyzed_quickly(piece: str, length: int) -> None:
    check((piece * length)[:length])
