"""A server in its own thread with a scripted model, and a client that knows the token."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from interpreter import OpenInterpreter
from interpreter.frontends.server.application import Application
from model_server import ModelServer
from waiting import LIMIT, until


class Serving:
    """`http` sends the token of the local user."""

    def __init__(self, application: Application, model: ModelServer) -> None:
        self.application, self.model = application, model
        self.hub, self.users = application.hub, application.users
        self._clients: list[httpx.Client] = []
        self.bound = application.bind()
        self._thread = threading.Thread(target=application.run, args=[self.bound], daemon=True)
        self._thread.start()
        self.url = application.url
        self.http = self.client(self.users.token)

    def client(self, token: str | None = None, **headers: str) -> httpx.Client:
        own = {"Authorization": f"Bearer {token}"} if token else {}
        made = httpx.Client(base_url=self.url, headers={**own, **headers}, timeout=LIMIT, trust_env=False, verify=False)
        self._clients.append(made)
        return made

    def user(self, name: str) -> httpx.Client:
        return self.client(self.users.add(name))

    def session(self, **body: Any) -> str:
        made = self.http.post("/api/sessions", json=body)
        assert made.status_code == 201, made.text
        return str(made.json()["id"])

    def say(self, session: str, words: str, **more: Any) -> dict[str, Any]:
        answer = self.http.post(f"/api/sessions/{session}/messages", json={"content": words, "wait": True, **more})
        assert answer.status_code == 202, answer.text
        return dict(answer.json())

    def run(self, session: str, code: str, language: str = "python") -> str:
        answer = self.http.post(f"/api/sessions/{session}/run", json={"language": language, "code": code})
        assert answer.status_code == 200, answer.text
        return "".join(str(message["content"]) for message in answer.json()["output"])

    def events(self, session: str, after: str = "0", **query: Any) -> list[dict[str, Any]]:
        answer = self.http.get(f"/api/sessions/{session}/events", params={"after": after, "limit": 5000, **query})
        assert answer.status_code == 200, answer.text
        return list(answer.json()["events"])

    def question(self, session: str) -> dict[str, Any]:
        questions = list[dict[str, Any]]()

        def is_asked() -> bool:
            questions[:] = self.http.get(f"/api/sessions/{session}/questions").json()["questions"]
            return bool(questions)

        until(is_asked, "a question")
        return questions[0]

    def answer(self, session: str, choice: str, **more: Any) -> httpx.Response:
        question = self.question(session)
        body = {"choice": choice, "digest": question["digest"], **more}
        return self.http.post(f"/api/sessions/{session}/questions/{question['id']}", json=body)

    def close(self) -> None:
        for client in self._clients:
            client.close()
        self.application.stop()
        self._thread.join(LIMIT)
        assert not self._thread.is_alive()


@contextmanager
def serving(*replies: Any, folder: Path | None = None, repeat: bool = False, **settings: Any) -> Iterator[Serving]:
    with ModelServer(replies, repeat=repeat) as model:
        template = OpenInterpreter(server_port=0, **settings)
        template.llm.model, template.llm.api_key, template.llm.api_base = "gpt-4o", "key", model.base_url
        served = Serving(Application(template, folder), model)
        try:
            yield served
        finally:
            served.close()


def ends_turn(event: dict[str, Any]) -> bool:
    return (event["kind"], event["data"].get("kind"), event["data"].get("state")) == ("action", "turn", "ended")


def texts(events: list[dict[str, Any]], kind: str = "message", role: str = "assistant") -> str:
    """Join the text of all events of a kind."""
    messages = [each["data"] for each in events if each["kind"] == kind and each["data"].get("role") == role]
    return "".join(data["content"] for data in messages if isinstance(data.get("content"), str))


def stored(folder: Path) -> dict[str, bytes]:
    """All files below a folder with their content, to check whether a request had an effect."""
    contents = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place, name)
            if path.is_file() and not name.startswith(("audit", ".index", "shares")):
                contents[str(path)] = path.read_bytes()
    return contents
