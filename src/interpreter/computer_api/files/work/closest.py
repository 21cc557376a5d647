"""What in a text is most like a text that was not found in it."""

from __future__ import annotations

import difflib
import re
from heapq import nlargest
from itertools import accumulate
from typing import Dict, List, Set

CUTOFF = 0.6  # as in difflib
LOOKED_AT = 60  # phrases that are compared letter by letter
LONGEST = 2_000  # characters of them that are compared
SHOWN = 400


def get_close_matches_in_text(original_text: str, filedata: str, n: int = 3) -> List[str]:
    """The `n` phrases of a text that are most like another one, the best first, each as it stands there."""
    wanted = original_text.split()
    words = list(re.finditer(r"\S+", filedata))
    size = min(len(wanted), len(words))
    if not size:
        return []
    starts = _promising([word.group() for word in words], size, _grams(wanted))
    sought = original_text.strip()[:LONGEST]
    scored = []
    for start in starts:
        phrase = filedata[words[start].start() : words[start + size - 1].end()]
        matcher = difflib.SequenceMatcher(None, phrase[:LONGEST], sought, autojunk=False)
        if matcher.quick_ratio() >= CUTOFF and (ratio := matcher.ratio()) >= CUTOFF:
            scored.append((ratio, start, phrase))
    return _apart(sorted(scored, key=lambda each: (-each[0], each[1])), size, n)


def _promising(words: List[str], size: int, grams: Set[str]) -> List[int]:
    """Where the phrases begin that share most letters in a row with what is sought."""
    worth: Dict[str, float] = {word: _worth(word, grams) for word in set(words)}
    sums = [0.0, *accumulate(worth[word] for word in words)]
    scores = ((sums[at + size] - sums[at], -at) for at in range(len(words) - size + 1))
    # The same phrase again and again is one; a few more are taken so that others have their chance.
    best: List[int] = []
    seen: Set[str] = set()
    for score, at in nlargest(LOOKED_AT * 4, scores):
        phrase = " ".join(words[-at : size - at])
        if score > 0 and phrase not in seen and len(best) < LOOKED_AT:
            seen.add(phrase)
            best.append(-at)
    return best


def _worth(word: str, grams: Set[str]) -> float:
    own = _grams([word])
    return len(word) * len(own & grams) / len(own)


def _grams(words: List[str]) -> Set[str]:
    """Pairs of letters, the ends of a word included."""
    return {padded[at : at + 2] for word in words for padded in (f" {word} ".lower(),) for at in range(len(padded) - 1)}


def _apart(scored: List[tuple], size: int, n: int) -> List[str]:  # type: ignore[type-arg]
    """The best that do not overlap, and no phrase twice."""
    chosen: List[tuple] = []  # type: ignore[type-arg]
    for each in scored:
        known = (each[2] == other[2] or abs(each[1] - other[1]) < size for other in chosen)
        if len(chosen) < n and not any(known):
            chosen.append(each)
    return [phrase if len(phrase) <= SHOWN else phrase[:SHOWN] + "..." for _, _, phrase in chosen]
