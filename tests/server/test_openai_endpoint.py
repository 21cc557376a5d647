"""The OpenAI-compatible endpoint, tested with OpenAI's own client."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from model_replies import Reply, Stall, error, text, tool_call
from running_server import Serving, serving, texts
from waiting import LIMIT, until

MAKE = tool_call("python", "open('made.txt', 'w').write('x')")


def client(served: Serving, **more: Any) -> Any:
    import openai  # slow to import, and every worker collects every test

    return openai.OpenAI(base_url=f"{served.url}/v1", api_key=served.users.token, max_retries=0, timeout=LIMIT, **more)


def user_message(words: str) -> Any:
    return [{"role": "user", "content": words}]


def test_a_completion_reports_usage_and_leaves_no_session(home: Path) -> None:
    with serving(text("Hello.")) as served, client(served) as chat:
        assert [model.id for model in chat.models.list()] == ["open-interpreter"]
        history: Any = [
            {"role": "system", "content": "Speak like a pirate."},
            {"role": "user", "content": "I am Anna."},
            {"role": "assistant", "content": "Ahoy."},
            {"role": "user", "content": [{"type": "text", "text": "Who am I?"}]},
        ]
        answer = chat.chat.completions.create(model="open-interpreter", messages=history)
        assert answer.choices[0].message.content == "Hello." and answer.choices[0].finish_reason == "stop"
        assert answer.usage is not None and answer.usage.total_tokens > 0
        sent = served.model.requests[-1].body["messages"]
        assert "pirate" in str(sent[0]) and [each["content"] for each in sent[1:]] == [
            "I am Anna.",
            "Ahoy.",
            "Who am I?",
        ]
        assert served.http.get("/api/sessions").json()["sessions"] == [] and not served.hub._live


def test_a_stream_arrives_in_chunks(home: Path) -> None:
    gate = threading.Event()
    words = text("One two three.", 4)
    with serving(Reply((words.deltas[0], Stall(gate), *words.deltas[1:]))) as served, client(served) as chat:
        options: Any = {"include_usage": True}
        stream = chat.chat.completions.create(
            model="open-interpreter", messages=user_message("Count."), stream=True, stream_options=options
        )
        chunks = [next(stream)]
        gate.set()
        chunks += stream
        pieces = [
            chunk.choices[0].delta.content for chunk in chunks if chunk.choices and chunk.choices[0].delta.content
        ]
        assert "".join(pieces) == "One two three." and len(pieces) > 1
        assert chunks[-1].usage is not None and chunks[-1].usage.completion_tokens > 0
        assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"


def test_a_named_user_keeps_a_session_and_yes_runs_its_block(home: Path) -> None:
    with serving(MAKE, text("Made."), text("Second.")) as served, client(served) as chat:

        def say(words: str) -> str:
            answer = chat.chat.completions.create(model="x", messages=user_message(words), user="anna")
            return str(answer.choices[0].message.content)

        shown = say("Make it.")
        assert "```python\nopen('made.txt', 'w')" in shown and "Do you want to run this code?" in shown
        assert not Path("made.txt").exists()
        assert say("Yes!").endswith("Made.") and Path("made.txt").exists()
        assert say("More?") == "Second."
        assert "Make it." in str(served.model.requests[-1].body["messages"])
        assert len(served.http.get("/api/sessions").json()["sessions"]) == 1


def test_any_answer_but_yes_does_not_run_the_block(home: Path) -> None:
    with serving(MAKE, text("As you like.")) as served, client(served) as chat:
        chat.chat.completions.create(model="x", messages=user_message("Make it."), user="u")
        answer = chat.chat.completions.create(model="x", messages=user_message("yes, but first tell me why"), user="u")
        assert answer.choices[0].message.content == "As you like." and not Path("made.txt").exists()


def test_a_header_selects_the_session(home: Path) -> None:
    import openai

    with serving(text("A."), text("B.")) as served:
        session = served.session()
        with client(served, default_headers={"X-Session-Id": session}) as chat:
            chat.chat.completions.create(model="x", messages=user_message("One."))
            chat.chat.completions.create(model="x", messages=user_message("Two."))
        messages = served.http.get(f"/api/sessions/{session}/messages").json()["messages"]
        assert [message["content"] for message in messages] == ["One.", "A.", "Two.", "B."]
        stranger = served.users.add("stranger")
        with (
            openai.OpenAI(
                base_url=f"{served.url}/v1", api_key=stranger, max_retries=0, default_headers={"X-Session-Id": session}
            ) as other,
            pytest.raises(openai.NotFoundError),
        ):
            other.chat.completions.create(model="x", messages=user_message("Three."))


def test_errors_have_openais_shape(home: Path) -> None:
    import openai

    with serving(error(401, {"error": {"message": "Incorrect API key."}})) as served, client(served) as chat:
        with pytest.raises(openai.BadRequestError) as wrong:
            chat.chat.completions.create(model="x", messages=[{"role": "assistant", "content": "x"}])
        assert wrong.value.body == {
            "message": "The last message must be the user's.", "type": "invalid_request_error",
            "param": None, "code": "messages",
        }  # fmt: skip
        with pytest.raises(openai.InternalServerError, match="key"):
            chat.chat.completions.create(model="x", messages=user_message("Hi."))
        wrong_key = openai.OpenAI(base_url=f"{served.url}/v1", api_key="wrong", max_retries=0)
        with wrong_key as stranger, pytest.raises(openai.AuthenticationError):
            stranger.models.list()
        with pytest.raises(openai.BadRequestError):
            chat.chat.completions.create(model="x", messages=[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://169.254.169.254/"}}]}])  # fmt: skip


def test_a_stale_yes_leaves_the_turn_of_another_client_alone(home: Path) -> None:
    import openai

    second = tool_call("python", "open('second.txt', 'w').write('x')")
    with serving(MAKE, second, text("Made.")) as served, client(served) as chat:
        session = served.session()
        own = chat.with_options(default_headers={"X-Session-Id": session})
        shown = own.chat.completions.create(model="x", messages=user_message("Make it."))
        assert "made.txt" in str(shown.choices[0].message.content)
        served.answer(session, "approve")
        until(lambda: "second" in str(served.question(session)), "the question that only the other client sees")
        with pytest.raises(openai.ConflictError, match="digest"):
            own.chat.completions.create(model="x", messages=user_message("yes"))
        assert served.answer(session, "approve").json() == {"answered": True}
        until(lambda: Path("second.txt").exists(), "the block that the other client approved")


def test_a_message_while_a_turn_runs_leaves_that_turn_alone(home: Path) -> None:
    import openai

    gate, words = threading.Event(), text("One two.", 4)
    with serving(Reply((words.deltas[0], Stall(gate), *words.deltas[1:]))) as served, client(served) as chat:
        session = served.session()
        served.http.post(f"/api/sessions/{session}/messages", json={"content": "Count."})
        until(lambda: texts(served.events(session)), "the first word")
        with pytest.raises(openai.ConflictError):
            chat.chat.completions.create(
                model="x", messages=user_message("Hi."), extra_headers={"X-Session-Id": session}
            )
        gate.set()
        until(lambda: texts(served.events(session)) == "One two.", "the whole answer")
