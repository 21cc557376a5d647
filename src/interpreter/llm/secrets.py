"""Secrets in the output of code: found by their shape, or because an environment variable holds them.

`Redactor` filters what is sent to the model. What the user sees and what is stored stays unchanged. Code that writes
a record to disk uses `redact(text)`, with the same rules. The work is linear in the text: a rule's pattern is bounded,
and is tried only if the text contains one of its marks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

_MIN_LENGTH = 12  # characters of a variable's value that counts as a secret
_NAMED = r"(?i)(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)(?:_|$)"
_WORD = r"(?<![A-Za-z0-9_-])"
_END = r"(?![A-Za-z0-9_-])"


class SecretPattern(NamedTuple):
    """The shape of one kind of secret; every text that contains one has one of the marks.

    The pattern is compiled when it is first needed. What its group `kept` matches is not part of the secret.
    """

    what: str
    marks: str  # with | between them
    pattern: str


_PEM = r"-----(?:BEGIN|END) (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----"
_AWS_SECRET = r"(?P<kept>(?:aws_secret_access_key|AWS_SECRET_ACCESS_KEY|SecretAccessKey)[\"']?\s{0,3}[:=]\s{0,3}[\"']?)"
_DIGIT = r"(?=[A-Za-z_-]{0,200}\d)"  # words with hyphens between them have none

RULES = (
    SecretPattern("private key", "PRIVATE KEY", rf"{_PEM}(?:(?!-----)[\s\S]){{20,20000}}(?:{_PEM})?"),
    SecretPattern("Anthropic key", "sk-ant-", rf"{_WORD}sk-ant-{_DIGIT}[A-Za-z0-9_-]{{20,300}}"),
    SecretPattern("OpenRouter key", "sk-or-", rf"{_WORD}sk-or-(?:v1-)?[A-Za-z0-9]{{20,100}}"),
    SecretPattern("OpenAI key", "sk-", rf"{_WORD}sk-(?:proj|svcacct|admin)-{_DIGIT}[A-Za-z0-9_-]{{20,300}}"),
    SecretPattern("API key", "sk-", rf"{_WORD}sk-{_DIGIT}[A-Za-z0-9]{{20,100}}{_END}"),
    SecretPattern("Stripe key", "k_live_|k_test_", rf"{_WORD}[rs]k_(?:live|test)_[A-Za-z0-9]{{16,120}}"),
    SecretPattern("GitHub token", "ghp_|gho_|ghu_|ghs_|ghr_", rf"{_WORD}gh[pousr]_[A-Za-z0-9]{{30,255}}"),
    SecretPattern("GitHub token", "github_pat_", rf"{_WORD}github_pat_[A-Za-z0-9_]{{40,255}}"),
    SecretPattern("GitLab token", "glpat-", rf"{_WORD}glpat-[A-Za-z0-9_-]{{20,100}}"),
    SecretPattern("AWS access key", "AKIA|ASIA", rf"{_WORD}(?:AKIA|ASIA)[A-Z2-7]{{16}}{_END}"),
    SecretPattern("AWS secret key", "ecret", rf"{_AWS_SECRET}[A-Za-z0-9/+]{{40}}(?![A-Za-z0-9/+=])"),
    SecretPattern("AWS secret key", "AWS_SECRET", rf"{_AWS_SECRET}[A-Za-z0-9/+]{{40}}(?![A-Za-z0-9/+=])"),
    SecretPattern("Google key", "AIza", rf"{_WORD}AIza[A-Za-z0-9_-]{{35}}{_END}"),
    SecretPattern("Slack token", "xox", rf"{_WORD}xox[abeoprs]-[A-Za-z0-9-]{{10,250}}"),
    SecretPattern("Hugging Face token", "hf_", rf"{_WORD}hf_[A-Za-z0-9]{{30,60}}{_END}"),
    SecretPattern("Groq key", "gsk_", rf"{_WORD}gsk_[A-Za-z0-9]{{40,80}}{_END}"),
    SecretPattern("xAI key", "xai-", rf"{_WORD}xai-[A-Za-z0-9]{{60,120}}{_END}"),
    SecretPattern("PyPI token", "pypi-AgE", rf"{_WORD}pypi-AgE[A-Za-z0-9_-]{{50,300}}"),
    SecretPattern("npm token", "npm_", rf"{_WORD}npm_[A-Za-z0-9]{{36}}{_END}"),
    SecretPattern(
        "JSON web token",
        "eyJ",
        rf"{_WORD}eyJ[A-Za-z0-9_-]{{8,4000}}\.eyJ[A-Za-z0-9_-]{{8,8000}}\.[A-Za-z0-9_-]{{10,1000}}",
    ),
    SecretPattern(
        "bearer token", "earer ", r"(?<=[Bb]earer )(?=[A-Za-z._~+/-]{0,200}\d)[A-Za-z0-9._~+/-]{20,4000}={0,2}"
    ),
    SecretPattern("password", "://", r"(?<=://)(?P<kept>[^\s/:@\"']{1,100}:)[^\s/@\"']{6,200}(?=@[\w.-])"),
)


class Redactor:
    """Removes secrets from texts. A text that was sent before is sent in the same form again."""

    def __init__(self) -> None:
        self._before: dict[str, str] = {}
        self._now: dict[str, str] = {}
        self._found: dict[str, None] = {}
        self._told: set[str] = set()

    def begin(self) -> None:
        """Start a new request; texts that are no longer in the conversation are forgotten."""
        self._before, self._now = self._now, {}

    def redact(self, text: str, values: Mapping[str, str]) -> str:
        """Replace each secret in the text by a note; `values` are secrets by their descriptions."""
        known = self._now.get(text) or self._before.get(text)
        if known is None:
            known, kinds = replace_secrets(text, values)
            self._found.update(dict.fromkeys(kinds))
        self._now[text] = known
        return known

    def news(self) -> list[str]:
        """Return the kinds of secrets that were found since the last call, each reported once."""
        new = [what for what in self._found if what not in self._told]
        self._told.update(new)
        return new


def replace_secrets(text: str, values: Mapping[str, str]) -> tuple[str, list[str]]:
    """Replace the secrets in a text by notes; return the text and the kinds of secrets."""
    kinds: list[str] = []
    for what, value in values.items():
        if value in text:
            text = text.replace(value, note(what))
            kinds.append(what)
    for rule in RULES:
        if any(mark in text for mark in rule.marks.split("|")):
            kept = r"\g<kept>" if "(?P<kept>" in rule.pattern else ""
            text, count = re.subn(rule.pattern, kept + note(rule.what), text)
            kinds += [rule.what] * bool(count)
    return text, kinds


def redact(text: str, environ: Mapping[str, str] | None = None) -> str:
    """Replace each secret in the text by a note, for a record on disk."""
    return replace_secrets(text, secret_values(os.environ if environ is None else environ))[0]


def note(what: str) -> str:
    return f"[redacted: {what}]"


def secret_values(environ: Mapping[str, str], more: Iterable[tuple[str, str | None]] = ()) -> dict[str, str]:
    """Return the secrets that variables hold, the longest first, by the descriptions that notes use."""
    named = [(f"value of {name}", value) for name, value in environ.items() if is_secret_name(name)]
    secrets = {what: value for what, value in [*named, *more] if value and _is_secret(value)}
    return dict(sorted(secrets.items(), key=lambda item: -len(item[1])))


def is_secret_name(name: str) -> bool:
    """Return whether a variable of this name most likely holds a key."""
    return re.search(_NAMED, name) is not None


def _is_secret(value: str) -> bool:
    """Return whether a value is long enough, and neither a path nor words nor a plain number."""
    if len(value) < _MIN_LENGTH or any(char.isspace() for char in value) or value.isdecimal():
        return False
    is_path = value.startswith(("/", "~", "./")) or (len(value) > 3 and value[1:3] == ":\\")
    return not (is_path and os.path.exists(os.path.expanduser(value)))
