"""Numbers, dates and file names of an answer that occur nowhere are found, and those that occur in another form aren't."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpreter.agent.grounding import Source, ungrounded

_INVENTED = re.compile(r"\{\{(.*?)\}\}")
NUMBERS = st.floats(0.01, 1e9, allow_nan=False, allow_infinity=False)


def missing(answer: str, *outputs: str) -> list[str]:
    return ungrounded(answer, [Source(output) for output in outputs])


class Recorded(NamedTuple):
    """An answer of the corpus. In it, `{{...}}` is invented."""

    answer: str
    sources: list[Source]
    files: list[str]

    @property
    def invented(self) -> list[str]:
        return _INVENTED.findall(self.answer)

    def found(self) -> list[str]:
        return ungrounded(_INVENTED.sub(r"\1", self.answer), self.sources, lambda name: name in self.files)


def recorded() -> list[Recorded]:
    """The corpus: `?` the request, `>` an output, `+` a file that exists, `:` the content of one, `=` the answer."""
    entries = []
    for entry in Path(__file__).with_name("grounding_corpus.txt").read_text(encoding="utf-8").split("\n\n"):
        lines: dict[str, list[str]] = {mark: [] for mark in "?>+:="}
        for line in entry.strip("\n").splitlines():
            lines[line[0]].append(line[2:])
        sources = [Source("\n".join(lines[">"])), Source("\n".join(lines["?"])), Source("\n".join(lines[":"]), "file")]
        entries.append(Recorded("\n".join(lines["="]), sources, lines["+"]))
    return entries


def test_the_corpus_has_few_false_alarms_and_few_misses() -> None:
    corpus = recorded()
    numbers = sum(len(re.findall(r"\d[\d.,]*", each.answer)) for each in corpus)
    invented = sum(len(each.invented) for each in corpus)
    alarms = [(text, each) for each in corpus for text in each.found() if not _is_in(text, each.invented)]
    misses = [(text, each) for each in corpus for text in each.invented if not _is_in(text, each.found())]
    assert len(corpus) >= 200 and numbers >= 500 and invented >= 80
    assert len(alarms) <= 0.02 * numbers, alarms
    assert len(misses) <= 0.05 * invented, misses


def _is_in(text: str, others: list[str]) -> bool:
    return any(text in other or other in text for other in others)


@given(NUMBERS, st.integers(0, 6))
def test_a_rounded_number_is_grounded(number: float, digits: int) -> None:
    is_counted = digits == 0 and number < 10  # 2 is not 1.5
    assert is_counted or number < 10**-digits or missing(f"It is {number:.{digits}f} kg.", repr(number)) == []


@given(NUMBERS, st.sampled_from(["{:,.2f}", "{:.2f}", "{:_.2f}"]))
def test_separators_do_not_matter(number: float, form: str) -> None:
    english = form.format(number)
    german = english.translate({ord(","): ".", ord("."): ","})
    spaced = english.replace(",", "\u202f")
    for written in (english, spaced, *([german] if "_" not in form else [])):
        assert missing(f"It is {written} in all", f"{number:.4f}") == []


@given(st.floats(0.001, 0.999), st.integers(0, 2))
def test_a_share_is_grounded_as_percent(share: float, digits: int) -> None:
    assert missing(f"That's {share * 100:.{digits}f}% of them.", f"{share:.9f}") == []


@given(
    st.dates(date(1000, 1, 1)),
    st.sampled_from(["%B %d, %Y", "%d %B %Y", "%d.%m.%Y", "%m/%d/%Y", "%Y-%m-%d", "%b %d", "%B %Y"]),
)
def test_a_date_is_grounded_in_any_form(day: date, form: str) -> None:
    assert missing(f"It was on {day:{form}}.", f"when\n{day:%Y-%m-%d} 00:00:00") == []


@given(st.integers(101, 10**9), st.integers(2, 10**6))
def test_another_number_is_not_grounded(number: int, difference: int) -> None:
    assert missing(f"There are {number + difference} of them", f"total {number}") == [str(number + difference)]


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_text_can_be_compared(answer: str, output: str) -> None:
    assert all(text in answer for text in missing(answer, output))


@given(st.text(max_size=200))
def test_everything_that_was_printed_is_grounded(text: str) -> None:
    assert missing(text, text) == []


@pytest.mark.parametrize(
    "answer",
    [
        "1. North\n2. South\n3. West",
        "In Python 3.12, take the top 5 and round to 2 decimals.",
        "Would you like the first 20 rows?",
        "Let me know if you want 100 bins.",
        "See https://example.com/2024/17 or run `df.head(25)`.",
        "```python\nprint(3.48)\n```",
        "UTF-8, COVID-19, H2O and Q3 are names.",
    ],
)
def test_what_states_no_fact_is_not_checked(answer: str) -> None:
    assert missing(answer, "done") == []


def test_sources_are_read_only_until_everything_is_supported() -> None:
    def outputs() -> object:
        yield Source("3.48")
        raise AssertionError("not needed")

    assert ungrounded("It is 3.48.", outputs()) == []  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text", ["1e400 9e-999 1e99999 " + "9" * 9000, "-" * 20_000, "@" * 20_000, "a" * 20_000, "](" * 9000]
)
def test_odd_text_is_compared_quickly(text: str) -> None:
    assert missing(text, f"{text} 1") == missing(text, text) == []


def test_code_names_no_file_that_exists() -> None:
    assert ungrounded("Saved as chart.png.", [Source("savefig('chart.png')", "code")]) == ["chart.png"]


def test_a_file_that_was_not_shown_supports_only_the_same_digits() -> None:
    source = [Source("a,3.4821\nb,1234", "file")]
    assert ungrounded("The mean is 3.48 and b is 1,234.", source) == ["3.48"]


def test_a_long_output_takes_no_long_time() -> None:
    rows = "\n".join(f"{n}, {n * 1.37:.4f}, 2024-01-{n % 28 + 1:02}" for n in range(20_000))
    assert missing("The last value is 27398.63 on January 16, and 99.123 elsewhere.", rows) == ["99.123"]
