"""Ollama: its models, downloading one, and conversations with a window that is large enough."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from interpreter import OpenInterpreter
from interpreter.errors import BrokenStreamError, LocalServerError, ModelError, RepeatingReplyError, UnknownModelError
from interpreter.llm.providers import resolve
from interpreter.local_models import ollama
from interpreter.local_models.ollama import OllamaModel, window_for
from interpreter.local_models.servers import LocalServers
from interpreter.messages import Chunk, Message
from model_server import ModelServer, text
from routed_server import Answer, RoutedServer, as_json, as_lines
from scripted_llm import HELLO, SYSTEM

SHOWN = as_json(
    {
        "model_info": {"general.architecture": "llama", "llama.context_length": 131072},
        "details": {"parameter_size": "8.0B", "quantization_level": "Q4_K_M"},
        "capabilities": ["completion", "tools"],
        "parameters": 'stop "<|eot_id|>"\nnum_keep 24',
    }
)
SAID = as_lines(
    {"message": {"role": "assistant", "content": "Hel"}, "done": False},
    {"message": {"role": "assistant", "content": "lo"}, "done": False},
    {
        "message": {"content": ""},
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": 9,
        "eval_count": 2,
    },
)
NOT_FOUND = as_json({"error": "model 'tiny' not found"}, 404)
PICTURE: Message = {"role": "user", "type": "image", "format": "base64.png", "content": "aWNvbg=="}


def ask(server: RoutedServer, *messages: Message, **settings: Any) -> Iterator[Chunk]:
    """Ask the model `ollama/tiny` of this server."""
    llm = OpenInterpreter().llm
    for name, value in ({"model": "ollama/tiny", "api_base": server.address} | settings).items():
        setattr(llm, name, value)
    return llm.reply([SYSTEM, *(messages or [HELLO])])


def chat_body(server: RoutedServer) -> Any:
    return next(asked.body for asked in server.asked if asked.path == "/api/chat")


def test_model_info_is_read_from_ollama() -> None:
    with RoutedServer({"POST /api/show": SHOWN}) as server:
        shown = ollama.show(server.address, "tiny")
        assert server.asked[0].body == {"model": "tiny"}
    assert shown == OllamaModel(131072, None, "8.0B")


def test_the_requested_window_respects_the_models_and_the_users_limits() -> None:
    usual = window_for(OllamaModel(window=131072))
    assert usual in (ollama.WINDOW, ollama.WINDOW_WITH_LITTLE_MEMORY)
    assert window_for(OllamaModel(window=2048)) == 2048, "no more than the model can do"
    assert window_for(OllamaModel(window=131072), wanted=50000) == 50000
    assert window_for(OllamaModel(window=4096), wanted=50000) == 4096
    assert window_for(OllamaModel(window=131072, set_window=30000)) == 30000, "set by the model's author"
    assert window_for(OllamaModel(), wanted=5000) == 5000
    assert window_for(OllamaModel()) == usual


def test_ollama_behind_the_openai_api_is_recognised_by_its_port(monkeypatch: pytest.MonkeyPatch) -> None:
    routes = {"POST /api/show": SHOWN, "POST /api/chat": SAID}
    with RoutedServer(routes) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.address)
        place = server.address.replace("127.0.0.1", "localhost") + "/v1"
        chunks = list(ask(server, model="tiny", api_base=place, api_key="key", context_window=5000))
    assert chat_body(server)["options"]["num_ctx"] == 5000
    assert "".join(chunk["content"] for chunk in chunks if chunk["type"] == "message") == "Hello"


def test_another_server_on_ollamas_port_is_asked_over_the_openai_api(monkeypatch: pytest.MonkeyPatch) -> None:
    with ModelServer([text("Hello"), text("Again")]) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.address)
        llm = OpenInterpreter().llm
        llm.model, llm.api_base = "tiny", server.base_url
        said = [
            chunk["content"] for _ in range(2) for chunk in llm.reply([SYSTEM, HELLO]) if chunk["type"] == "message"
        ]
    assert said == ["Hello", "Again"]
    assert [request.path for request in server.requests].count("/api/show") <= 1


def test_every_request_sets_the_window_size() -> None:
    with RoutedServer({"POST /api/show": SHOWN, "POST /api/chat": SAID}) as server:
        chunks = list(ask(server, context_window=12345, max_tokens=50, temperature=0.0))
    assert chat_body(server)["options"] == {"num_ctx": 12345, "num_predict": 50, "temperature": 0.0}
    assert [chunk["content"] for chunk in chunks if chunk["type"] == "message"] == ["Hel", "lo"]
    usage = next(chunk["content"] for chunk in chunks if chunk.get("format") == "usage")
    assert usage == {
        "input_tokens": 9,
        "output_tokens": 2,
        "estimated": False,
        "cost": 0,
        "cost_estimated": False,
    }


def test_the_default_window_is_larger_than_ollamas() -> None:
    with RoutedServer({"POST /api/show": SHOWN, "POST /api/chat": SAID}) as server:
        list(ask(server))
    assert chat_body(server)["options"]["num_ctx"] >= 8192


def test_the_model_is_looked_up_once_for_many_turns() -> None:
    with RoutedServer({"POST /api/show": SHOWN, "POST /api/chat": SAID}) as server:
        llm = OpenInterpreter().llm
        llm.model, llm.api_base = "ollama/tiny", f"{server.address}/v1"
        for _ in range(3):
            list(llm.reply([SYSTEM, HELLO]))
        assert server.paths() == ["POST /api/show", *["POST /api/chat"] * 3]


def test_ollama_host_sets_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    with RoutedServer({"POST /api/show": SHOWN, "POST /api/chat": SAID}) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.address.removeprefix("http://"))
        assert list(ask(server, api_base=None))


def test_a_server_without_the_ollama_api_is_asked_over_the_openai_api() -> None:
    said = Answer(200, [b'{"choices": [{"message": {"content": "Hello"}}]}'])
    with RoutedServer({"POST /v1/chat/completions": said}) as server:
        llm = OpenInterpreter().llm
        llm.model, llm.api_base = "ollama/tiny", server.address
        for _ in range(2):
            assert next(iter(llm.reply([SYSTEM, HELLO]))) == {"type": "message", "content": "Hello"}
        assert server.paths() == ["POST /api/show", *["POST /v1/chat/completions"] * 2]


def test_the_window_is_known_before_the_model_is_asked() -> None:
    local = LocalServers()
    with RoutedServer({"POST /api/show": SHOWN}) as server:
        endpoint = resolve("ollama/tiny", {}, server.address)
        assert local.window(endpoint, 4000) == 4000
        assert local.window(endpoint) == window_for(OllamaModel(window=131072))
    assert local.window(resolve("builtin/x", {})) == 8192
    assert local.window(resolve("builtin/x", {}), 2048) == 2048
    assert local.window(resolve("jan/x", {})) is None


def test_a_missing_model_suggests_pulling_it() -> None:
    routes = {"POST /api/show": NOT_FOUND, "POST /api/chat": NOT_FOUND}
    with RoutedServer(routes) as server, pytest.raises(UnknownModelError, match="ollama pull tiny"):
        list(ask(server))


def test_a_broken_reply_keeps_the_partial_text() -> None:
    half = as_lines({"message": {"content": "Hel"}, "done": False}, ends=False)
    received: list[Chunk] = []
    routes = {"POST /api/show": SHOWN, "POST /api/chat": half}
    with RoutedServer(routes) as server, pytest.raises(BrokenStreamError):
        received.extend(ask(server, max_retries=0))
    assert received == [{"type": "message", "content": "Hel"}]


def test_a_stream_that_ends_too_early_raises_an_error() -> None:
    half = as_lines({"message": {"content": "Hel"}, "done": False})
    routes = {"POST /api/show": SHOWN, "POST /api/chat": half}
    with RoutedServer(routes) as server, pytest.raises(BrokenStreamError):
        list(ask(server, max_retries=0))


@pytest.mark.parametrize(
    "last", [[], [{"error": "prediction aborted, token repeat limit reached"}]], ids=["no last line", "error"]
)
def test_a_repeating_reply_that_ollama_aborts_is_not_retried(last: list[dict[str, Any]]) -> None:
    """Older versions end it without a last line, newer ones with an error."""
    same = as_lines(*[{"message": {"content": " G"}, "done": False}] * 31, *last)
    routes = {"POST /api/show": SHOWN, "POST /api/chat": same}
    with RoutedServer(routes) as server, pytest.raises(RepeatingReplyError, match="kept repeating"):
        list(ask(server))
    assert server.paths().count("POST /api/chat") == 1


def test_an_error_in_a_stream_is_raised() -> None:
    failed = as_lines({"message": {"content": "x"}, "done": False}, {"error": "llama runner process died"})
    routes = {"POST /api/show": SHOWN, "POST /api/chat": failed}
    with RoutedServer(routes) as server, pytest.raises(ModelError, match="llama runner process died"):
        list(ask(server, max_retries=0))


def test_lines_may_be_split_anywhere() -> None:
    whole = b"".join(SAID.pieces)
    for size in (1, 7, len(whole)):
        cut = [whole[i : i + size] for i in range(0, len(whole), size)]
        answer = Answer(200, cut, SAID.headers)
        with RoutedServer({"POST /api/show": SHOWN, "POST /api/chat": answer}) as server:
            said = [chunk["content"] for chunk in ask(server) if chunk["type"] == "message"]
        assert "".join(said) == "Hello"


def test_a_reply_that_is_not_streamed() -> None:
    whole = as_json({"message": {"content": "Hello"}, "done": True, "done_reason": "stop"})
    with RoutedServer({"POST /api/show": SHOWN, "POST /api/chat": whole}) as server:
        assert next(ask(server)) == {"type": "message", "content": "Hello"}


def test_thinking_becomes_reasoning_in_a_cut_reply() -> None:
    cut = as_lines(
        {"message": {"content": "", "thinking": "Hmm."}, "done": False},
        {"message": {"content": "A"}, "done": True, "done_reason": "length"},
    )
    with RoutedServer({"POST /api/show": SHOWN, "POST /api/chat": cut}) as server:
        chunks = list(ask(server))
    assert {"type": "reasoning", "content": "Hmm."} in chunks


def test_tool_calls_are_sent_and_received() -> None:
    call = {"function": {"name": "execute", "arguments": {"language": "python", "code": "1 + 1"}}}
    answer = as_lines({"message": {"tool_calls": [call, call]}, "done": False}, {"done": True})
    history: list[Message] = [
        HELLO,
        {"role": "assistant", "type": "code", "format": "python", "content": "2 + 2"},
        {"role": "computer", "type": "console", "format": "output", "content": "4"},
    ]
    with RoutedServer({"POST /api/show": SHOWN, "POST /api/chat": answer}) as server:
        chunks = list(ask(server, *history, supports_functions=True))
        body = chat_body(server)
    assert body["tools"][0]["function"]["name"] == "execute"
    called = next(message for message in body["messages"] if message.get("tool_calls"))
    assert called["tool_calls"][0]["function"] == {
        "name": "execute",
        "arguments": {"language": "python", "code": "2 + 2"},
    }
    assert body["messages"][-1]["role"] == "tool"
    assert [chunk.get("content") for chunk in chunks if chunk["type"] == "code"] == [
        "1 + 1",
        None,
        "1 + 1",
        None,
    ]


def test_images_are_sent_in_their_own_field() -> None:
    with RoutedServer({"POST /api/show": SHOWN, "POST /api/chat": SAID}) as server:
        list(ask(server, HELLO, PICTURE, supports_vision=True))
    with_image = [message for message in chat_body(server)["messages"] if message.get("images")]
    assert [message["images"] for message in with_image] == [["aWNvbg=="]]
    assert all(isinstance(message["content"], str) for message in chat_body(server)["messages"])


def test_pulling_a_model_reports_progress() -> None:
    events = as_lines(
        {"status": "pulling manifest"},
        {"status": "pulling aa", "digest": "aa", "total": 100},
        {"status": "pulling aa", "digest": "aa", "total": 100, "completed": 60},
        {"status": "pulling bb", "digest": "bb", "total": 10, "completed": 10},
        {"status": "verifying sha256 digest"},
        {"status": "success"},
    )
    with RoutedServer({"POST /api/pull": events}) as server:
        steps = list(ollama.pull(server.address, "llama3.1"))
        assert server.asked[0].body == {"model": "llama3.1", "stream": True}
    assert steps[0] == (0, 0)
    assert steps[2] == (60, 100)
    assert steps[3] == (70, 110)
    assert steps[-1] == (70, 110)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (as_lines({"error": "pull model manifest: file does not exist"}), "file does not exist"),
        (as_lines({"status": "pulling aa", "digest": "aa", "total": 9}), "resumes where it stopped"),
        (as_lines({"status": "pulling aa", "digest": "aa"}, ends=False), "Nothing answers|broke off"),
        (as_json({"error": "invalid model name"}, 400), "invalid model name"),
        (Answer(200, [b"<html>"], {"Content-Type": "text/html"}), "not Ollama"),
    ],
)
def test_a_failed_pull_says_why(answer: Answer, words: str) -> None:
    with RoutedServer({"POST /api/pull": answer}) as server, pytest.raises(LocalServerError, match=words):
        list(ollama.pull(server.address, "x"))


def test_an_unreachable_ollama_suggests_starting_it() -> None:
    with RoutedServer({}) as server:
        address = server.address
    with pytest.raises(LocalServerError, match="ollama serve"):
        ollama.show(address, "tiny")
