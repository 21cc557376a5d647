"""Questions over HTTP: dry runs and rules bound to what was shown, and the event log across a restart."""

from __future__ import annotations

import json
from pathlib import Path

from interpreter.frontends.server.gate import Audit
from interpreter.tools import Tool
from model_replies import text, tool_call
from running_server import Serving, serving
from waiting import until

WRITE = tool_call("python", "x = 5\nopen('notes.txt', 'w').write('two\\n')\nprint('seen')")


def preview(served: Serving, session: str, digest: str | None = None) -> tuple[str, dict[str, object]]:
    question = served.question(session)
    path = f"/api/sessions/{session}/questions/{question['id']}"
    answer = served.http.post(f"{path}/preview", json={"digest": digest or question["digest"]})
    return path, {"status": answer.status_code, "digest": question["digest"], **answer.json()}


def until_idle(served: Serving, session: str) -> None:
    until(lambda: not served.http.get(f"/api/sessions/{session}").json()["running"], "the end of the turn")


def test_a_dry_run_can_be_discarded_or_applied(home: Path) -> None:
    Path("notes.txt").write_text("one\n")
    with serving(WRITE, text("Done.")) as served:
        session = served.session()
        served.say(session, "Go.")
        assert served.question(session)["offers"] == ["preview", "always"]
        assert preview(served, session, "0" * 64)[1]["status"] == 409
        path, first = preview(served, session)
        assert [(each["path"], each["what"]) for each in first["changes"]] == [("notes.txt", "changed")]  # type: ignore[attr-defined]
        assert "-one\n+two" in first["changes"][0]["diff"] and first["output"][0]["content"] == "seen\n"  # type: ignore[index]
        assert Path("notes.txt").read_text() == "one\n"
        assert served.http.delete(f"{path}/preview").status_code == 204
        late = {"choice": "approve", "digest": first["digest"], "preview": first["id"]}
        assert served.http.post(path, json=late).status_code == 409
        _, second = preview(served, session)
        assert served.http.post(path, json={**late, "preview": second["id"], "choice": "refuse"}).status_code == 400
        assert served.http.post(path, json={**late, "preview": second["id"], "digest": "0"}).status_code == 409
        assert served.http.post(path, json={**late, "preview": second["id"]}).status_code == 200
        until_idle(served, session)
        assert Path("notes.txt").read_text() == "two\n"
        assert served.run(session, "print(x)") == "5\n", "its variables are kept, too"


def test_a_dry_run_does_not_outlive_its_question(home: Path) -> None:
    with serving(WRITE) as served:
        session = served.session()
        served.say(session, "Go.")
        _, made = preview(served, session)
        live = served.hub.find(served.hub.locate(served.users.find("local"), session))  # type: ignore[arg-type]
        assert live is not None
        trial = live.interpreter.session.questions.open[0].dry_runs[0]
        assert trial.id == made["id"] and trial.can_apply
        served.http.post(f"/api/sessions/{session}/cancel")
        until_idle(served, session)
        assert not trial.can_apply and not Path("notes.txt").exists()


def test_the_local_user_can_read_and_save_a_rule(home: Path) -> None:
    again = tool_call("python", "open('notes.txt', 'w').write('three')")
    with serving(WRITE, text("Done."), again, text("Again.")) as served:
        session = served.session()
        served.say(session, "Go.")
        question = served.question(session)
        path = f"/api/sessions/{session}/questions/{question['id']}"
        rule = served.http.get(f"{path}/rule").json()
        assert rule["sentence"].startswith("Always allow writing notes.txt, in python code.")
        assert rule["wider"]["sentence"].startswith("Always allow writing files in this folder, in python code.")
        assert "decision: allow" in rule["rule"]
        yes = {"choice": "approve", "digest": question["digest"]}
        assert served.http.post(path, json={**yes, "rule": "0"}).status_code == 409
        assert served.http.post(path, json={**yes, "rule": rule["digest"]}).status_code == 200
        until_idle(served, session)
        answer = served.say(session, "Again.")
        assert answer["questions"] == [] and Path("notes.txt").read_text() == "three"


def test_other_users_cannot_save_rules(home: Path) -> None:
    with serving(WRITE) as served:
        anna = served.user("anna")
        session = anna.post("/api/sessions", json={}).json()["id"]
        anna.post(f"/api/sessions/{session}/messages", json={"content": "Go.", "wait": True})
        question = anna.get(f"/api/sessions/{session}/questions").json()["questions"][0]
        assert question["offers"] == ["preview"]
        path = f"/api/sessions/{session}/questions/{question['id']}"
        assert anna.get(f"{path}/rule").status_code == 403
        body = {"choice": "approve", "digest": question["digest"], "rule": "x"}
        assert anna.post(path, json=body).status_code == 403
        assert anna.get(f"/api/sessions/{session}/questions").json()["questions"], "it still waits"


def test_a_shared_block_is_logged_once_even_after_a_restart(home: Path) -> None:
    with serving(text("Five."), repeat=True) as served:
        session = served.session()
        run = {"language": "python", "code": "print(5)", "shared": True}
        served.http.post(f"/api/sessions/{session}/run", json=run)
        served.say(session, "What was it?")
        sent = json.dumps(served.model.requests[-1].body)
        assert sent.count("print(5)") == 1

        def said() -> list[tuple[str, str]]:
            rows = [(each["kind"], each["data"]) for each in served.events(session)]
            return [(kind, data["content"]) for kind, data in rows if data.get("content") in ("print(5)", "5\n")]

        assert said() == [("code", "print(5)"), ("console", "5\n")]
        live = served.hub.find(served.hub.locate(served.users.find("local"), session))  # type: ignore[arg-type]
        assert live is not None and served.hub.retire(live)
        assert said() == [("code", "print(5)"), ("console", "5\n")]
        positions = [int(each["position"].partition(":")[0]) for each in served.events(session)]
        assert positions == sorted(positions)


def test_a_large_audit_log_is_rotated(tmp_path: Path) -> None:
    trail = Audit(tmp_path / "audit.jsonl", largest=2000)
    for number in range(200):
        trail.write("anna" if number % 2 else "bert", "POST", f"/{number}", 200, "")
    kept = sorted(path.name for path in tmp_path.iterdir())
    assert set(kept) - {"audit.jsonl"} == {f"audit.jsonl.{age}" for age in range(1, 5)}
    assert all(path.stat().st_size < 2200 and path.stat().st_mode & 0o077 == 0 for path in tmp_path.iterdir())
    assert [row["path"] for row in trail.read("anna", 20)] == [f"/{number}" for number in range(161, 200, 2)]


def test_a_yes_to_a_call_can_be_for_the_session(home: Path) -> None:
    """The page offers it where the question does."""
    code = "for name in 'ab':\n    print(tools.note(text=name))"
    with serving(tool_call("python", code), text("Done.")) as served:
        served.hub.template.tools.append(Tool.function(note))
        session = served.session()
        served.http.post(f"/api/sessions/{session}/messages", json={"content": "go"})
        assert served.answer(session, "approve").status_code == 200
        until(lambda: served.question(session)["kind"] == "call", "the call")
        assert served.question(session)["offers"] == ["session"]
        assert served.answer(session, "approve", scope="session").status_code == 200
        until_idle(served, session)
        output = [each["data"].get("content") for each in served.events(session) if each["kind"] == "console"]
        assert "".join(map(str, output)).count("noted") == 2


def note(text: str) -> str:
    """Note it."""
    return f"noted {text}"
