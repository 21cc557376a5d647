"""Grounding of answers: which numbers, dates and file names occur in no output, file or message of the session.

The comparison allows for what people do to numbers when they write: rounding, separators, percent, units, other forms
of a date, and arithmetic with two numbers of the same sentence. It knows nothing about what the numbers mean.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from itertools import permutations
from typing import Literal, NamedTuple

_GAPS = "\u00a0\u202f\u2009"  # spaces that do not break a line, between groups of digits
_PLAIN = str.maketrans("−⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "--0123456789")
_NUMBER = re.compile(
    rf"(?<![\w.])(?<![A-Za-z]-)(?P<digits>\.?\d+(?:[.,'’_{_GAPS}]\d+| \d{{3}}(?!\d))*)"
    r"(?:[eE](?P<exponent>[-+]?\d{1,3}(?!\d))|\s?(?:[×x*·]|\\times)\s?10\^?\{?(?P<power>[-−+⁻]?[\d⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3})\}?)?"
    r"(?P<unit>\s?(?:%|°?[A-Za-zµ]+))?"
)
# How groups of thousands and decimals are separated: `1,234` may be a thousand, or a bit more than one.
_SEPARATED = [
    (thousands[-1], decimal[-1], re.compile(rf"\d{{1,3}}(?:{thousands}\d{{2,3}})*{thousands}\d{{3}}(?:{decimal}\d+)?"))
    for thousands, decimal in ((",", r"\."), (r"\.", ","), ("'", r"\."), ("_", r"\."), (" ", r"\."), (" ", ","))
]
_MONTHS = ("January February March April May June July August September October November December").split()
_MONTH_NUMBERS = {form: n for n, name in enumerate(_MONTHS, 1) for form in (name, name[:3], name[:3].upper())}
_MONTH = rf"(?P<month>{'|'.join(_MONTHS)}|Sept|{'|'.join(_MONTH_NUMBERS)})\b\.?"
_DAY, _YEAR = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?", r"(?P<year>\d{4})"
_DATES = [
    re.compile(rf"(?<!\d){form}(?!\d)")
    for form in (
        r"(?P<day>\d{1,2})([-/.])(?P<month>\d{1,2})\2(?P<year>\d{4}|\d{2})",
        rf"{_YEAR}[-/.](?P<month>\d{{1,2}})(?:[-/.](?P<day>\d{{1,2}}))?(?![.,]\d)",
        r"(?P<year>(?:19|20)\d\d)(?P<month>[01]\d)(?P<day>[0-3]\d)",
        rf"\({_YEAR}, (?P<month>\d{{1,2}}), (?P<day>\d{{1,2}})",
        rf"\b{_MONTH}\s{_DAY}(?:,?\s{_YEAR})?",
        rf"{_DAY}(?: of|\.)?[-/\s]{_MONTH}(?:[-/,]?\s?{_YEAR})?",
        rf"\b{_MONTH},?[-\s]{_YEAR}",
    )
]
_TIME = re.compile(
    r"(?<![\d:.])(\d{1,2})(?::([0-5]\d)(?::([0-5]\d)(?:\.\d+)?)?(?![\d:])|(?=\s?[ap]m))(?:\s?([ap])m\b)?", re.I
)
FILE_NAME = re.compile(
    r"(?<![\w~./\\:-])[\w~./\\-]*[\w-]\.(?:csv|tsv|xlsx?|ods|parquet|feather|jsonl?|ndjson|ya?ml|toml|xml|txt|log|md|pdf|docx?|"
    r"pptx?|png|jpe?g|gif|svg|webp|tiff?|heic|html?|db|sqlite3?|duckdb|zip|tar|t?gz|pkl|npy|h5|ipynb|py|sh|sql|ini|bak|rtf|eml|"
    r"ics|mp[34]|wav|mov|mkv|avi)\b(?![(.]\w)",
    re.IGNORECASE,
)
_DOTTED = re.compile(r"(?<![\w.])(?!\d{1,3}(?:\.\d{3})+(?!\.?\d))\d+(?:\.\d+){2,}(?![\w.]*\w)")  # versions, addresses
_FENCE = re.compile(r"```(?!text|csv|json|\n)\w+[^\n]*\n.*?```", re.DOTALL)
# Expressions in code, addresses on the web, and the numbering of a list.
_NOT_STATED = re.compile(
    r"`[^`\n]*[(=\[{<>*+][^`\n]*`|(?:https?://|www\.)\S+|(?<![^\s@])[^\s@]+@[^\s@]+|\]\([^)\s\[\]]*\)"
    r"|^[ \t]*(?:[-*#>]+[ \t]*)?(?:\*\*)?\d{1,3}[.)](?=[\s*])",
    re.MULTILINE,
)
_SENTENCE = re.compile(r"[^\n]*?(?:[.!?][)*\"']*(?=\s)|\n|$)")
_OFFER = re.compile(
    r"\?\W*$|\b(?:let me know|would you|do you want|(?:shall|should) I|if you (?:want|need|like|would)|feel free)\b",
    re.IGNORECASE,
)
_HEDGE = re.compile(
    r"(?:\b(?:about|around|approximately|approx\.?|roughly|nearly|almost|over|above|under|below|"
    r"(?:more|less|fewer) than|at least|at most|close to|some|circa|ca\.|up to|exceeding)|[~≈<>])\s*[$€£]?\s*$",
    re.IGNORECASE,
)
# A number after or before such words is no finding.
_LABEL = re.compile(
    r"(?:\b(?:top|first|last|bottom|next|previous|step|table|figure|fig\.|section|part|option|python|version|node|"
    r"utf|latin|iso|(?:alpha|α|level)(?: of| =)?)|\bp\b.*[<>≤])[-\s#]*$",
    re.IGNORECASE,
)
_LABELLED = re.compile(r"[-%\s]*(?:decimals?|digits?|significant|confidence|CI\b|significance|level|dimension)", re.I)
_COUNTED = re.compile(
    r"\s?(?:\w+\s)?(?:rows?|records?|columns?|entries|lines?|files?|items?|values?|missing|duplicates?|times|people|"
    r"customers?|orders?|products?|categories|groups?|regions?|errors?|warnings?|words?|pages?|users?)\b",
    re.IGNORECASE,
)
_UNITS: tuple[dict[str, float], ...] = (
    {"ms millisecond": 0.001, "s sec second": 1, "min minute": 60, "h hr hour": 3600, "d day": 86400, "week": 604800},
    {"mm": 0.001, "cm": 0.01, "m metre meter": 1, "km kilometre kilometer": 1000},
    {"mg": 0.001, "g gram": 1, "kg kilogram": 1000, "t ton tonne": 1e6},
    {"% percent pct percentage per": 0.01, "": 1},
    {"k thousand": 1e3, "m mn mio million": 1e6, "b bn mrd billion": 1e9, "trillion": 1e12, "": 1},
    {"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "": 1},
    {"kb kib": 2**10, "mb mib": 2**20, "gb gib": 2**30, "tb tib": 2**40, "": 1},
    {"x c f v w hz px kwh eur usd": 1},
)
# By what a number with a unit may be multiplied to compare it with one in another unit.
_FACTORS: dict[str, set[float]] = {
    name: {1.0}.union(
        *(
            {size / other for other in units.values()}
            for units in _UNITS
            for names, size in units.items()
            if name in names.split()
        )
    )
    for name in " ".join(" ".join(units) for units in _UNITS).split()
}
_MAX_COMPUTED = 40  # numbers: with more, a wrong one is easily the result of something
_Kind = Literal["name", "date", "dotted", "time", "number"]
_STATED: list[tuple[_Kind, re.Pattern[str]]] = [
    ("name", FILE_NAME),
    *(("date", form) for form in _DATES),
    ("dotted", _DOTTED),
    ("time", _TIME),
    ("number", _NUMBER),
]

Date = tuple["int | None", "int | None", "int | None"]  # year, month and day; or hours, minutes and seconds


class Source(NamedTuple):
    """What an answer may draw on.

    `text`: what the model has read. `code`: what it has written, which may name files that do not exist. `file`: what
    it has not seen, so that only the same digits support a number.
    """

    text: str
    kind: Literal["text", "code", "file"] = "text"


class Claim(NamedTuple):
    """Something in an answer that has to come from somewhere; one of its readings is enough."""

    text: str
    start: int
    kind: _Kind = "number"
    dates: Sequence[Date] = ()
    value: float = 0
    step: float = 0  # one unit of its last digit
    readings: Sequence[Sequence[tuple[float, float]]] = ()  # each: numbers within these limits
    unit: str = ""


def ungrounded(answer: str, sources: Iterable[Source], exists: Callable[[str], bool] = lambda name: False) -> list[str]:
    """List the claims of an answer that no source supports, as written; read no more sources than needed."""
    claims = claims_in(answer)
    missing = [claim for claim in claims if claim.kind != "name" or not exists(claim.text)]
    for facts in map(_Facts, sources if missing else ()):
        missing = [claim for claim in missing if not facts.support(claim)]
        if not missing:
            break
    missing_at = {claim.start for claim in missing}
    grounded = [claim for claim in claims if claim.start not in missing_at]
    return list(dict.fromkeys(claim.text for claim in missing if not _is_derived(claim, grounded)))


# -- what an answer states -----------------------------------------------------------------------------------------


def claims_in(answer: str) -> list[Claim]:
    """List the numbers, dates and file names that an answer states, without those in code, numbering and offers."""
    claims: list[Claim] = []
    text = _SENTENCE.sub(
        lambda found: _blank(found) if _OFFER.search(found[0]) else found[0],
        _NOT_STATED.sub(_blank, _FENCE.sub(_blank, answer)),
    )

    def take(kind: _Kind, found: re.Match[str]) -> str:
        claim: Claim | None = Claim(found[0], found.start(), kind)
        match kind:
            case "number":
                claim = _number_claim(found)
            case "date":
                claim = Claim(found[0], found.start(), kind, dates) if (dates := _dates(found)) else None
            case "time":
                claim = Claim(found[0], found.start(), kind, [_time(found)])
        claims.extend([claim] if claim else [])
        return _blank(found) if claim else found[0]

    for kind, pattern in _STATED:
        text = pattern.sub(partial(take, kind), text)
    return claims


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])


def _number_claim(found: re.Match[str]) -> Claim | None:
    before = found.string[max(0, found.start() - 24) : found.start()]
    after = found.string[found.end("digits") : found.end() + 24]
    unit, values = _unit(found), _values(found)
    is_attached = not after[:1].isspace() and bool(found["unit"])
    value, step = values[0]
    is_label = before.endswith(("^", "'", "’")) or (_LABEL.search(before) and value <= 100) or _LABELLED.match(after)
    if is_label or (is_attached and unit not in _FACTORS):
        return None
    factors = _FACTORS.get(unit, {1})
    is_whole = step >= 1 and len(factors) == 1
    is_hedged = bool(_HEDGE.search(before)) and (value >= 10 or not is_whole)
    is_exact = is_whole and not is_hedged and (value < 10 or 1900 <= value <= 2100 or bool(_COUNTED.match(after)))
    readings = [[(float(part), float(part)) for part in re.findall(r"\d+", found["digits"])]] * (" " in found["digits"])
    for value, step in values:
        zeros = re.findall(r"0*$", f"{value:.0f}")[0]
        slack = max(step, min(float(f"1e{len(zeros)}"), 0.3 * value)) if is_hedged else 0 if is_exact else step / 2
        high = value + (step * 0.999 if step < 1 and not is_hedged else slack)  # cut off is as good as rounded
        readings += [[((value - slack) * factor, high * factor)] for factor in factors]
    unit_shown = found["unit"] if is_attached or (unit == "%" and "%" in found["unit"]) else ""
    value, step = values[0]
    return Claim(found["digits"] + unit_shown, found.start(), value=value, step=step, readings=readings, unit=unit)


def _unit(found: re.Match[str]) -> str:
    """Return the unit after a number, as _FACTORS names it; empty if the word is none."""
    word = re.sub(r"(?<=..)s$", "", (found["unit"] or "").strip().lstrip("°").lower())
    return word if word in _FACTORS else ""


def _values(found: re.Match[str]) -> list[tuple[float, float]]:
    """Return the values that it may have, each with one unit of its last digit."""
    digits = re.sub(rf"[{_GAPS}]", " ", found["digits"]).replace("’", "'")
    power = int((found["exponent"] or found["power"] or "0").translate(_PLAIN))
    forms = [digits] if re.fullmatch(r"\d*\.?\d+", digits) else []
    for thousands, decimal, pattern in () if digits.isdigit() else _SEPARATED:
        if pattern.fullmatch(digits):
            forms.append(digits.replace(thousands, "").replace(decimal, "."))
    if re.fullmatch(r"\d+,\d+", digits) or not forms:
        forms.append(re.findall(r"\d+(?:\.\d+)?", digits.replace(",", "."))[0])
    return [
        (float(f"{form}e{power}"), float(f"1e{power - len(form.partition('.')[2])}")) for form in dict.fromkeys(forms)
    ]


def _dates(found: re.Match[str]) -> list[Date]:
    """Return the dates that it may be: 3/4/2024 is two, 39/14/2024 is none."""
    year, day = (int(part) if (part := found.groupdict().get(name)) else None for name in ("year", "day"))
    month = _MONTH_NUMBERS.get(found["month"][:3]) or int(found["month"])
    orders = [(month, day), (day or 0, month)] if found.re is _DATES[0] else [(month, day)]
    year = year + 2000 if year is not None and year < 100 else year
    return [(year, *order) for order in orders if 1 <= order[0] <= 12 and (order[1] is None or 1 <= order[1] <= 31)]


def _time(found: re.Match[str]) -> Date:
    hour, minute, second = (int(part) if part else None for part in found.group(1, 2, 3))
    return (hour or 0) % 12 + 12 * (found[4] in "pP") if found[4] else hour, minute, second


# -- what a source supports ----------------------------------------------------------------------------------------


class _Facts:
    """The numbers, dates and times in a source, each found when it is first needed."""

    def __init__(self, source: Source) -> None:
        self._text, self._kind = source

    def support(self, claim: Claim) -> bool:
        match claim.kind:
            case "name":
                return self._kind == "text" and re.split(r"[/\\]", claim.text)[-1].lower() in self._text.lower()
            case "dotted":
                return claim.text in self._text
            case "time" | "date":
                known = self._times if claim.kind == "time" else self._dates
                hour, *rest = claim.dates[0]
                if claim.kind == "time" and not any(rest) and {hour, (hour or 24) - 1} & set(self._numbers):
                    return True  # a table by hours
                return any(
                    all(part in (None, other or 0) for part, other in zip(date, each, strict=True))
                    for each in known
                    for date in claim.dates
                )
        if self._kind == "file":  # which has many numbers: a short one would be found in any
            digits = f"{claim.value:.15g}"
            same = rf"(?<!\d)(?<!\d[.,]){re.escape(digits)}{'0*' if '.' in digits else '(?:[.]0+)?'}(?!\d)"
            return len(digits) > 2 and re.search(same, self._text) is not None
        is_count = self._kind == "text" and claim.step == 1 and not claim.unit and claim.value in self._counts
        is_precise = claim.value >= claim.step * (10 if claim.unit == "%" else 100)
        return is_count or any(
            all(_has(values, *limits) for limits in reading)
            for values in (self._numbers, *([self._computed] if is_precise else []))
            for reading in claim.readings
        )

    @cached_property
    def _numbers(self) -> list[float]:
        values: set[float] = set()
        for found in _NUMBER.finditer(re.sub(r"(?<=[A-Za-z_])(?=\d)", " ", self._text)):
            read = {value for value, _ in _values(found)}
            if not (found["exponent"] or found["power"]):
                read.update(map(float, re.findall(r"\d+(?:\.\d+)?", found["digits"])))
            values.update(
                value * factor
                for value in read
                for factor in _FACTORS.get(_unit(found), {1}) & {1.0, 0.01, 1e3, 1e6, 1e9}
            )
        values.update(3600 * (hour or 0) + 60 * (minute or 0) + (second or 0) for hour, minute, second in self._times)
        return sorted(values)

    @cached_property
    def _dates(self) -> set[Date]:
        return {date for pattern in _DATES for found in pattern.finditer(self._text) for date in _dates(found)}

    @cached_property
    def _times(self) -> set[Date]:
        return set(map(_time, _TIME.finditer(self._text)))

    @cached_property
    def _counts(self) -> set[int]:
        """Return the numbers of lines and of items in the text."""
        lines = [line for line in self._text.splitlines() if line.strip()]
        counts = {1, len(lines), len(lines) - 1, *(len(re.split(r",|(?<=\d)\s+(?=\d)", line)) for line in lines)}
        counts |= {len(FILE_NAME.findall(self._text)), *(len(re.findall(r"['\"]\s?:", line)) for line in lines)}
        is_empty = not lines or re.search(r"empty|none|\bno\b|false|\[\]|\{\}|set\(\)", self._text, re.IGNORECASE)
        return counts | {0} if is_empty else counts

    @cached_property
    def _computed(self) -> list[float]:
        """Return what follows from the numbers of a column or line: sum, mean, shares, and results of two of a few."""
        lines = self._text.splitlines() if self._kind == "text" else []
        lines = lines if len(lines) <= 2 * _MAX_COMPUTED else []
        cells = (re.split(r"\s" if " " in line else "[,;]", line) for line in lines)
        numbers = ([_values(match)[0][0] for cell in row for match in _NUMBER.finditer(cell)] for row in cells)
        rows = list(filter(None, numbers))
        columns = [[row[n] for row in rows if -len(row) <= n < len(row)] for n in range(-3, 3)]
        results: set[float] = set()
        for values in (*columns, *rows):
            if 1 < len(values) <= _MAX_COMPUTED and (total := sum(values)):
                results |= {total, total / len(values)} | {each / total for each in values}
                for one, other in permutations(values, 2) if len(values) < 6 else zip(values[1:], values, strict=False):
                    results |= {one - other, one / other - 1} if other else set()
                    if len(values) < 6:
                        results |= {
                            one + other,
                            (one + other) / 2,
                            (one + other) / total,
                            one * other,
                            one / (other or 1),
                        }
        return sorted(map(abs, results))


def _has(numbers: Sequence[float], low: float, high: float) -> bool:
    """Check sorted numbers for one within these limits."""
    slack = 1e-15 * abs(high)
    at = bisect_left(numbers, low - slack)
    return at < len(numbers) and numbers[at] <= high + slack


def _is_derived(claim: Claim, grounded: list[Claim]) -> bool:
    """Check whether a number is the sum, difference, ratio or change of two supported numbers beside it."""
    near = [each.value for each in grounded if each.step and abs(claim.start - each.start) < 160]  # characters
    is_year = claim.step == 1 and 1900 <= claim.value <= 2100
    for one, other in permutations(near[-8:] if claim.step and not is_year else [], 2):
        ratio = one / other if other else 0.0
        quotients = (100 * ratio, 100 * (ratio - 1)) if claim.unit == "%" else (ratio,)
        if any(abs(abs(each) - claim.value) <= 1.01 * claim.step for each in (one + other, one - other, *quotients)):
            return True
    return False
