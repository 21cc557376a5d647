"""Secrets in the output of code are redacted before they reach the model."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import random
import string
import time
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversation import Chatting, chatting  # noqa: F401
from interpreter.llm.secrets import Redactor, redact, replace_secrets, secret_values
from model_server import text, tool_call

LETTERS = string.ascii_letters + string.digits


def fake_secret(prefix: str, length: int, letters: str = LETTERS) -> str:
    return prefix + "".join(random.Random(prefix).choices(letters, k=length - 1)) + "7"


PEM = (
    "-----BEGIN RSA PRIVATE KEY-----\n"
    + "\n".join(fake_secret(str(n), 64) for n in range(20))
    + "\n-----END RSA PRIVATE KEY-----"
)
JWT = ".".join(
    base64.urlsafe_b64encode(part).decode().rstrip("=") for part in (b'{"alg":"x"}', b'{"sub":"123"}', b"s" * 20)
)
SECRETS = {
    "OpenAI key": fake_secret("sk-proj-", 80),
    "API key": fake_secret("sk-", 48),
    "Anthropic key": fake_secret("sk-ant-api03-", 90),
    "OpenRouter key": fake_secret("sk-or-v1-", 64, "0123456789abcdef"),
    "GitHub token": fake_secret("ghp_", 36),
    "GitLab token": fake_secret("glpat-", 20),
    "AWS access key": "AKIAIOSFODNN7EXAMPLE".replace("7", "3"),
    "Google key": fake_secret("AIza", 35),
    "Slack token": fake_secret("xoxb-123456789012-", 24),
    "Hugging Face token": fake_secret("hf_", 34),
    "Groq key": fake_secret("gsk_", 52),
    "Stripe key": fake_secret("sk_live_", 24),
    "npm token": fake_secret("npm_", 36),
    "JSON web token": JWT,
    "private key": PEM,
}


@pytest.mark.parametrize(("what", "secret"), SECRETS.items())
@pytest.mark.parametrize("around", ["{}", "key={}\n", 'before "{}" after', "{{'key': '{}'}}", "line\n{}\nline"])
def test_a_secret_is_replaced_by_a_note_naming_its_kind(what: str, secret: str, around: str) -> None:
    assert redact(around.format(secret), {}) == around.format(f"[redacted: {what}]")


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("Authorization: Bearer abcdefghij0123456789KLMN", "Authorization: Bearer [redacted: bearer token]"),
        ("postgres://ada:correct-horse@db.example/x", "postgres://ada:[redacted: password]@db.example/x"),
        (
            f"aws_secret_access_key = {fake_secret('s', 39)}",
            "aws_secret_access_key = [redacted: AWS secret key]",
        ),
        (PEM[:400], "[redacted: private key]"),
    ],
)
def test_secrets_recognised_by_their_context_are_redacted(output: str, expected: str) -> None:
    assert redact(output, {}) == expected


ORDINARY_OUTPUT = [
    hashlib.sha256(b"x").hexdigest(),
    hashlib.sha1(b"x").hexdigest(),
    f"commit {hashlib.sha1(b'y').hexdigest()}",
    str(uuid.UUID(int=2**100 + 12345)),
    base64.b64encode(bytes(range(256)) * 40).decode(),
    "the task-management-system-dashboard-v2 of sk-learn and sk-loading-spinner-component-primary-2",
    "sk-proj-management-dashboard-component-primary",
    "http://localhost:8000/path and https://user@example.com/x, see file://x/y:z",
    "Bearer of bad news, internationalisation-and-localisation words",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\nssh-rsa AAAAB3NzaC1yc2E user@host",
    "eyJhbGciOiJIUzI1NiJ9 is half of one",
    "pandas 2.2.0 numpy 1.26.4 /usr/lib/python3.11/site-packages/AKIA",
]


@pytest.mark.parametrize("output", ORDINARY_OUTPUT)
def test_ordinary_output_is_not_redacted(output: str) -> None:
    assert redact(output, {}) == output


@given(st.binary(max_size=300), st.text(max_size=200), st.uuids())
def test_digests_uuids_and_images_are_not_redacted(data: bytes, words: str, number: uuid.UUID) -> None:
    digests = " ".join(hashlib.new(name, data).hexdigest() for name in ("md5", "sha1", "sha256", "sha512"))
    image = "data:image/png;base64," + base64.b64encode(data).decode()
    for output in (digests, image, str(number)):
        assert redact(output, {}) == output


@given(
    st.sampled_from(sorted(SECRETS)), st.text(" \n\t.,;=()[]{}<>|é漢", max_size=40), st.text(" \n\"',;)]}", max_size=40)
)
def test_no_part_of_a_secret_is_left(what: str, before: str, after: str) -> None:
    secret = SECRETS[what]
    left = redact(before + secret + after, {})
    assert all(secret[at : at + 12] not in left for at in range(0, len(secret) - 12, 4))
    assert left.startswith(before) and left.endswith(after)


def test_values_of_secret_environment_variables_are_redacted() -> None:
    environ = {
        "DB_PASSWORD": "correct horse".replace(" ", "-"),
        "MY_TOKEN": "0123456789ab",
        "SHORT_KEY": "abc",
        "KEYBOARD_LAYOUT": "de-latin1-nodeadkeys",
        "TOKENIZERS_PARALLELISM": "false-false-false",
        "TOKEN_PATH": os.sep,
        "SECRET_FILE": os.path.abspath(__file__),
        "SECRET_NUMBER": "123456789012",
        "USER_KEY": "two words and more",
    }
    assert secret_values(environ) == {"value of DB_PASSWORD": "correct-horse"} | {"value of MY_TOKEN": "0123456789ab"}
    assert redact("the password is correct-horse!", environ) == "the password is [redacted: value of DB_PASSWORD]!"


def test_redaction_is_stable_and_reports_each_kind_once() -> None:
    redactor = Redactor()
    redactor.begin()
    first = redactor.redact(f"a {SECRETS['GitHub token']}", {})
    assert redactor.news() == ["GitHub token"]
    redactor.begin()
    assert redactor.redact(f"a {SECRETS['GitHub token']}", {"value of NEW_KEY": "a "}) == first
    assert redactor.redact(f"b {SECRETS['GitHub token']}", {}) == "b [redacted: GitHub token]"
    assert redactor.news() == []


def test_redaction_takes_linear_time() -> None:
    """Texts on which nested patterns would take minutes."""
    for hostile in (
        "sk-" * 200_000,
        "eyJ" + "a" * 600_000,
        "-----BEGIN PRIVATE KEY-----" + "x" * 600_000,
        "://a:" * 100_000,
    ):
        began = time.monotonic()
        replace_secrets(hostile, {})
        assert time.monotonic() - began < 20


def test_the_model_gets_a_note_and_the_user_one_notice(chatting: Chatting) -> None:  # noqa: F811
    secret = SECRETS["OpenAI key"]
    replies = [tool_call("echo", f"x {secret}"), tool_call("echo", f"y {secret}"), text("Done.")]
    interpreter, server = chatting(*replies, auto_run=True)
    chunks = list(interpreter.chat("Go", display=False, stream=True))
    notices = [chunk["content"] for chunk in chunks if chunk.get("format") == "redacted"]
    assert notices == [{"what": ["OpenAI key"]}]
    results = [m["content"] for m in server.requests[-1].messages if m["role"] == "tool"]
    assert results == ["x [redacted: OpenAI key]", "y [redacted: OpenAI key]"]
    assert secret in json.dumps(interpreter.messages)


def test_redaction_can_be_turned_off(chatting: Chatting) -> None:  # noqa: F811
    secret = SECRETS["OpenAI key"]
    interpreter, server = chatting(tool_call("echo", secret), text("Done."), auto_run=True, redact_secrets=False)
    interpreter.chat("Go", display=False)
    assert [m["content"] for m in server.requests[-1].messages if m["role"] == "tool"] == [secret]


def test_the_models_own_api_key_is_redacted(chatting: Chatting) -> None:  # noqa: F811
    interpreter, server = chatting(tool_call("echo", "key: my-very-own-key"), text("Done."), auto_run=True)
    interpreter.llm.api_key = "my-very-own-key"
    interpreter.chat("Go", display=False)
    assert server.requests[-1].messages[-1]["content"] == "key: [redacted: API key]"
