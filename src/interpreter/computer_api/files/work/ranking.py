"""Ranks what was found by how much it is about a query: BM25 over the words of names and docstrings."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import List, Sequence

from .definitions import Definition

K, B = 1.4, 0.7  # how soon more of a word stops to count, and how much a long text is worth less
IN_NAME = 1.5  # what a word in a name counts beside that
TELLING = 600  # characters of a docstring: what follows are parameters and examples
COMMON = frozenset(
    "a an and are as at be by do for from get how i in is it of on or that the this to use what with".split()
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")


def words_of(text: str) -> List[str]:
    """The words of a text or a name, in their plain form; those that say nothing only if there are no others."""
    words = [_plain(word.lower()) for word in _WORD.findall(text)]
    telling = [word for word in words if word not in COMMON]
    return telling or words


def _plain(word: str) -> str:
    """Without the commonest endings, so that `parses`, `parsing` and `parse` are one."""
    for ending in ("ing", "ies", "es", "ed", "s", "e", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


class Ranked:
    """The definitions, to be asked for the best."""

    def __init__(self, found: Sequence[Definition], query: str) -> None:
        self._found, self._query, self._wanted = found, query.strip().lower(), set(words_of(query))
        self._names = [set(words_of(each.name.rpartition(".")[2])) for each in found]
        self._texts = [Counter(words_of(each.doc[:TELLING])) for each in found]
        self._sizes = [sum(text.values()) for text in self._texts]
        self._usual = max(1.0, sum(self._sizes) / max(1, len(found)))
        both = (name | text.keys() for name, text in zip(self._names, self._texts))
        self._in = Counter(word for words in both for word in self._wanted & words)

    def best(self, most: int) -> List[Definition]:
        scores = [(self._score(at), -len(each.name)) for at, each in enumerate(self._found)]
        order = sorted(range(len(scores)), key=lambda at: scores[at], reverse=True)
        return [self._found[at] for at in order[:most] if scores[at][0] > 0]

    def _score(self, at: int) -> float:
        text, name, total, met = self._texts[at], self._names[at], 0.0, 0
        length = K * (1 - B + B * self._sizes[at] / self._usual)
        for word in self._wanted & (name | text.keys()):
            rare = math.log(1 + (len(self._found) - self._in[word] + 0.5) / (self._in[word] + 0.5))
            total += rare * (text[word] * (K + 1) / (text[word] + length) + IN_NAME * (word in name))
            met += 1
        full = self._found[at].name.lower()
        is_named = full == self._query or full.endswith("." + self._query)
        return (total * met / len(self._wanted)) * (2 if is_named else 1)
