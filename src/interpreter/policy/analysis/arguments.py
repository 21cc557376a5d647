"""The words after a program's name: options, their values, and the rest."""

from __future__ import annotations

from collections.abc import Sequence


class Arguments:
    """`-rf --out=x a b` as options `{-r, -f, --out}`, values `{--out: [x]}` and operands `[a, b]`."""

    def __init__(self, words: Sequence[str], with_value: str = "", stop_early: bool = False) -> None:
        """`with_value`: the options that take the next word; `stop_early`: the first operand ends the options."""
        self.options: set[str] = set()
        self.values: dict[str, list[str]] = {}
        self.operands: list[str] = []
        self._taking = frozenset(with_value.split())
        left = list(reversed(words))
        while left:
            word = left.pop()
            if word == "--" or (stop_early and not _is_option(word)):
                self.operands += ([] if word == "--" else [word]) + left[::-1]
                return
            if not _is_option(word):
                self.operands.append(word)
            elif word.startswith("--") or word in self._taking:
                self._long(word, left)
            else:
                self._letters(word, left)

    def has(self, *names: str) -> bool:
        return not self.options.isdisjoint(names)

    def value(self, *names: str) -> list[str]:
        """What was given to any of these options."""
        return [value for name in names for value in self.values.get(name, ())]

    def _long(self, word: str, left: list[str]) -> None:
        name, equals, value = word.partition("=")
        self.options.add(name)
        if equals:
            self.values.setdefault(name, []).append(value)
        elif name in self._taking and left:
            self.values.setdefault(name, []).append(left.pop())

    def _letters(self, word: str, left: list[str]) -> None:
        for at, letter in enumerate(word[1:], 2):
            name = f"-{letter}"
            self.options.add(name)
            if name not in self._taking:
                continue
            value = word[at:] or (left.pop() if left else "")
            self.values.setdefault(name, []).append(value)
            return


def _is_option(word: str) -> bool:
    return len(word) > 1 and word.startswith("-")
