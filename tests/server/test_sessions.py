"""Sessions over HTTP: creating, reading, changing and deleting them."""

from __future__ import annotations

import io
import json
import os
import shutil
import threading
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import ClientConnection, connect

from interpreter.agent.turn import Turn
from interpreter.frontends.server import sessions
from interpreter.frontends.server.gate import Refused
from interpreter.frontends.server.sessions import Index, SessionKey
from interpreter.session.journal.file import NAME, read_summary
from model_replies import Stall, error, text, tool_call
from running_server import Serving, ends_turn, serving, texts
from waiting import in_thread, until

BLOCK = tool_call("python", "x = 41\nprint(x + 1)")
BYTES = {"Content-Type": "application/octet-stream"}


def socket(served: Serving, session: str, after: str = "0") -> ClientConnection:
    address = f"{served.url.replace('http', 'ws', 1)}/api/sessions/{session}/events?after={after}"
    return connect(address, additional_headers={"Authorization": f"Bearer {served.users.token}"}, proxy=None)


def until_idle(served: Serving, session: str) -> None:
    until(lambda: not served.http.get(f"/api/sessions/{session}").json()["running"], "the end of the turn")


def test_a_block_is_approved_by_its_digest(home: Path) -> None:
    with serving(BLOCK, text("It is 42.")) as served:
        session = served.session()
        answer = served.say(session, "What is 41 + 1?")
        question = answer["questions"][0]
        assert (question["kind"], question["content"]["content"]) == ("block", "x = 41\nprint(x + 1)")
        path = f"/api/sessions/{session}/questions/{question['id']}"
        for wrong in ({"choice": "approve"}, {"choice": "approve", "digest": "0" * 64}):
            assert served.http.post(path, json=wrong).json()["error"]["type"] == "digest"
        assert served.http.post(path, json={"choice": "maybe"}).status_code == 400
        assert served.http.post(path, json={"choice": "approve", "digest": question["digest"]}).status_code == 200
        until_idle(served, session)
        assert served.http.post(path, json={"choice": "approve", "digest": question["digest"]}).status_code == 404
        events = served.events(session)
        assert "42" in texts(events, "console", "computer") and texts(events) == "It is 42."
        answered = next(event["data"] for event in events if event["kind"] == "answer")
        assert (answered["choice"], answered["by"]) == ("approve", "client:local")
        shown = next(event["data"] for event in events if event["kind"] == "confirmation")
        assert shown["digest"] == question["digest"]
        messages = served.http.get(f"/api/sessions/{session}/messages").json()["messages"]
        assert [message["role"] for message in messages] == ["user", "assistant", "computer", "assistant"]


def test_what_a_client_does_is_done_in_its_name(home: Path) -> None:
    with serving(BLOCK, text("It is 42."), mode="auto") as served:
        session = served.session()
        path = f"/api/sessions/{session}"
        served.say(session, "What is 41 + 1?")
        for verb in ("undo", "redo", "fork"):
            assert served.http.post(f"{path}/{verb}", json={}).is_success, verb
        point = served.http.get(f"{path}/timeline").json()["points"][0]["id"]
        assert served.http.post(f"{path}/restore", json={"point": point}).status_code == 200
        assert served.http.get(f"{path}/export").status_code == 409  # there is nothing to export any more
        assert served.http.patch(path, json={"settings": {"mode": "plan"}}).json()["mode"] == "plan"
        changed = [each["data"] for each in served.events(session) if each["kind"] == "permissions"]
        assert {"actor": "agent", "mode": "plan", "sandboxed": True} in changed
        served.run(session, "print(1)")
        assert served.http.put(f"{path}/files/a.txt", content=b"a", headers=BYTES).status_code == 200
        events = [each for each in served.events(session) if each["kind"] in ("action", "undone")]
        client = {each["data"].get("kind", "undone"): each["actor"] for each in events if not each["turn"]}
        kinds = ("undo", "redo", "fork", "restore", "export", "settings", "block", "upload", "undone")
        assert {kind: client[kind] for kind in kinds} == dict.fromkeys(kinds, "client")
        # The record says the same.
        assert served.hub.retire(served.hub.open(SessionKey("local", session)))
        stored = {each["data"]["kind"]: each["actor"] for each in served.events(session) if each["kind"] == "action"}
        assert all(stored[kind] == "client" for kind in kinds if kind != "undone")


def test_an_error_of_a_turn_is_its_last_event(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-abcdefghijklmnopqrstuvwxyz0123456789"
    wrong = error(401, {"error": {"message": f"Incorrect API key: {key}."}})
    with serving(wrong, text("Never said.")) as served:
        served.hub.template.llm.api_key = key
        session, failed = served.session(), list[BaseException]()

        def end(number: int) -> Any:
            """The last event of a turn, which may come after the answer to its message."""
            until(lambda: sum(map(ends_turn, served.events(session))) == number, "the end of the turn")
            return [each["data"] for each in served.events(session) if ends_turn(each)][-1]

        assert served.say(session, "Go.")["running"] == ""
        first = end(1)
        assert first["outcome"] == "error" and "Incorrect API key" in first["text"]
        assert key not in json.dumps(served.events(session))
        assert {each["kind"] for each in served.events(session)}.isdisjoint({"error", "status"})
        # Of an error of the server's own, clients learn only that there was one.
        monkeypatch.setattr(served.hub, "failed", failed.append)
        monkeypatch.setattr(Turn, "_converse", lambda turn: iter([1 / 0]))
        assert served.say(session, "Go on.")["running"] == ""
        assert (end(2)["error"], end(2)["text"]) == ("ZeroDivisionError", sessions.FAILED)
        until(lambda: failed, "the failure")
        assert isinstance(failed[0], ZeroDivisionError)
        # The record has no texts of errors.
        assert served.hub.retire(served.hub.open(SessionKey("local", session)))
        stored = [each["data"]["text"] for each in served.events(session) if ends_turn(each)]
        assert stored == [f"The turn ended with an error: {first['error']}.", sessions.FAILED]


def test_readers_miss_and_repeat_nothing(home: Path) -> None:
    long = "".join(f"word{number} " for number in range(300))
    with serving(text(long, 7), text("Second."), mode="auto") as served:
        session = served.session()
        frames: list[Any] = []
        with socket(served, session) as reader:
            _, posted = in_thread(served.say, session, "Talk.")
            while not (frames and ends_turn(frames[-1])):
                frames.append(json.loads(reader.recv(60)))
        until(lambda: posted, "the answer")
        assert texts(frames) == long
        # A reader that disconnects after every few events, in the middle of texts.
        broken, position = [], "0"
        while page := served.events(session, position, limit=3):
            broken += page
            position = page[-1]["position"]
        assert texts(broken) == texts(served.events(session)) == long
        assert [each["number"] for each in broken] == sorted(each["number"] for each in broken)
        middle = frames[len(frames) // 2]["position"]
        with socket(served, session, middle) as reader:
            late = [json.loads(reader.recv(60))]
            while not ends_turn(late[-1]):
                late.append(json.loads(reader.recv(60)))
        until_middle = frames[: frames.index(next(each for each in frames if each["position"] == middle)) + 1]
        assert texts(until_middle) + texts(late) == long


def test_server_sent_events_carry_their_position_as_id(home: Path) -> None:
    with serving(text("One two three.", 3)) as served:
        session = served.session()
        served.say(session, "Count.")
        lines = []
        path, accept = f"/api/sessions/{session}/events?after=0", {"Accept": "text/event-stream"}
        with served.http.stream("GET", path, headers=accept) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            for line in answer.iter_lines():
                lines.append(line)
                if '"ended"' in line:
                    break
        data = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
        ids = [line[4:] for line in lines if line.startswith("id: ")]
        assert texts(data) == "One two three." and ids == [each["position"] for each in data]


def test_secrets_in_output_and_variables_are_redacted(home: Path) -> None:
    with serving() as served:
        session = served.session()
        secret = "sk-" + "a1B2" * 12
        assert secret not in served.run(
            session,
            "import sys\nfor part in ('sk-', 'a1B2' * 12, '\\n'): print(part, end='', flush=True)\nkey = 'sk-' + 'a1B2' * 12",
        )
        everything = json.dumps(served.events(session)) + served.http.get(f"/api/sessions/{session}/variables").text
        assert secret not in everything and "redacted" in everything


def test_a_running_turn_can_be_cancelled_and_blocks_a_second_one(home: Path) -> None:
    endless = tool_call("python", "import time\nprint('on', flush=True)\ntime.sleep(600)")
    with serving(text("Hello."), endless, mode="auto") as served:
        session = served.session()
        served.say(session, "Hello.")
        path = f"/api/sessions/{session}"
        assert served.http.post(f"{path}/messages", json={"content": "Sleep."}).status_code == 202
        until(lambda: "on" in texts(served.events(session), "console", "computer"), "the block")
        for name, body in (("messages", {"content": "x"}), ("undo", {}), ("run", {"language": "python", "code": "1"})):
            busy = served.http.post(f"{path}/{name}", json=body)
            assert busy.status_code == 409 and "Wait for it, or cancel it" in busy.text
        assert served.http.post(f"{path}/cancel").json() == {"cancelled": True}
        until_idle(served, session)
        assert served.run(session, "print('after')") == "after\n"


def test_undo_and_redo_restore_files_messages_and_variables(home: Path) -> None:
    code = "open('made.txt', 'w').write('x'); y = 1"
    with serving(tool_call("python", code), text("Done."), mode="auto") as served:
        session = served.session()
        served.say(session, "Make it.")
        assert Path("made.txt").exists()
        path = f"/api/sessions/{session}"
        assert served.http.post(f"{path}/undo").json()["restored"] == ["made.txt"]
        assert not Path("made.txt").exists()
        assert served.http.get(f"{path}/messages").json()["messages"] == []
        served.http.post(f"{path}/redo", json={"count": 1})
        assert Path("made.txt").exists() and served.run(session, "print(y)") == "1\n"
        assert served.http.post(f"{path}/redo").status_code in (400, 409)


def test_files_are_accessible_only_inside_the_workspace(home: Path, tmp_path: Path) -> None:
    outside = tmp_path / "secret.txt"
    outside.write_text("secret")
    with serving() as served:
        session = served.session(workspace="work")
        path = f"/api/sessions/{session}/files"
        content, kind = b"a,b\n1,2\n" * 1000, {"Content-Type": "application/octet-stream"}
        assert served.http.put(f"{path}/data/table.csv", content=content, headers=kind).json()["size"] == len(content)
        assert served.http.get(f"{path}/data/table.csv").content == content
        assert "attachment" in served.http.get(f"{path}/data/table.csv").headers["content-disposition"]
        Path("work/link").symlink_to(outside)
        Path("work/up").symlink_to(tmp_path)
        assert {(each["name"], each["kind"]) for each in served.http.get(path).json()["files"]} == {
            ("data", "folder"), ("link", "link"), ("up", "link"),
        }  # fmt: skip
        assert served.http.get(path, params={"path": "data"}).json()["files"][0]["size"] == len(content)
        for name in ("link", "up/secret.txt", "..%2Fnotes.txt", "%2Fetc%2Fpasswd", "data/../../x", "missing", "data"):
            answer = served.http.get(f"{path}/{name}")
            assert answer.status_code in (400, 404) and b"secret" not in answer.content, name
            if name != "missing":
                written = served.http.put(f"{path}/{name}", content=b"x", headers=kind)
                assert written.status_code in (200, 400, 404, 405)
        assert outside.read_text() == "secret" and not (tmp_path / "x").exists()
        assert served.http.get(path, params={"path": "../.."}).status_code == 400
        for number in range(2005):
            Path(f"work/data/{number}.txt").touch()
        listed = served.http.get(path, params={"path": "data"}).json()
        assert (len(listed["files"]), listed["more"]) == (2000, 6)
        assert not list(Path("work").glob(".upload*"))


def test_variables_tables_and_figures_can_be_read(home: Path) -> None:
    with serving() as served:
        session = served.session()
        served.run(
            session, "import pandas as pd\ndf = pd.DataFrame({'n': range(100), 'm': range(100, 0, -1)})\nword = 'hi'"
        )
        path = f"/api/sessions/{session}"
        rows = served.http.get(f"{path}/variables").json()["variables"]["Python"]
        assert {"df", "word"} <= {row["name"] for row in rows}
        query = {"row": 1, "rows": 2, "sort": "m", "filter": "n < 50"}
        table = served.http.get(f"{path}/variables/python/df", params=query).json()
        assert (table["kind"], table["rows"], table["total"], table["header"]) == ("table", 50, 100, ["n", "m"])
        assert table["cells"] == [["48", "47"], ["52", "53"]]
        assert served.http.get(f"{path}/variables/python/word").json()["text"] == "hi"
        assert served.http.get(f"{path}/variables/python/nothing").status_code == 400
        assert served.http.get(f"{path}/variables/klingon/df").status_code == 404
        served.http.post(f"{path}/run", json={"language": "python", "shared": True, "code": "import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.show()"})  # fmt: skip
        figures = served.http.get(f"{path}/figures").json()["figures"]
        picture = served.http.get(f"{path}/figures/{figures[0]['number']}")
        assert picture.headers["content-type"] == "image/png" and picture.content.startswith(b"\x89PNG")
        assert served.http.get(f"{path}/figures/999").status_code == 404


def test_sessions_can_be_listed_searched_forked_exported_and_deleted(home: Path) -> None:
    with serving(text("First."), text("Second.")) as served:
        one, two = served.session(workspace="one"), served.session(workspace="two", title="About whales")
        served.run(one, "a = 1\nopen('f.txt', 'w').write('one')")
        assert "NameError" in served.run(two, "a")
        served.say(one, "Tell me about sharks.")
        listed = served.http.get("/api/sessions").json()["sessions"]
        assert {row["id"] for row in listed} == {one, two}
        assert [row["id"] for row in served.http.get("/api/sessions", params={"q": "WHALES"}).json()["sessions"]] == [
            two
        ]
        assert [
            row["id"] for row in served.http.get("/api/sessions", params={"q": "sharks one"}).json()["sessions"]
        ] == [one]
        assert served.http.get("/api/sessions", params={"q": "100%"}).json()["sessions"] == []
        assert served.http.get("/api/sessions", params={"before": 10**20}).status_code == 400
        served.http.patch(f"/api/sessions/{two}", json={"title": "Über Wale"})
        for words in ("Über", "über", "ÜBER wale"):
            assert [row["id"] for row in served.http.get("/api/sessions", params={"q": words}).json()["sessions"]] == [
                two
            ]
        fork = served.http.post(f"/api/sessions/{one}/fork").json()
        assert fork["id"] != one and served.run(fork["id"], "print(a, open('f.txt').read())") == "1 one\n"
        served.run(fork["id"], "a = 2")
        assert served.run(one, "print(a)") == "1\n"
        notebook = served.http.get(f"/api/sessions/{one}/export", params={"form": "notebook"})
        assert "sharks" in json.dumps(notebook.json())
        assert served.http.get(f"/api/sessions/{served.session()}/export").status_code == 409
        assert served.http.patch(f"/api/sessions/{two}", json={"title": "Whales"}).json()["title"] == "Whales"
        assert served.http.delete(f"/api/sessions/{one}").status_code == 204
        assert served.http.get(f"/api/sessions/{one}").status_code == 404
        left = {row["id"] for row in served.http.get("/api/sessions").json()["sessions"]}
        assert one not in left and {two, fork["id"]} < left


def test_permissions_can_be_tightened_but_not_loosened(home: Path) -> None:
    with serving(sandbox="workspace") as served:
        session = served.session(settings={"mode": "plan", "model": "gpt-4o-mini"})
        for wrong in (
            {"mode": "auto"}, {"auto_run": True}, {"api_base": "http://evil"}, {"sandbox": "off"}, {"sandbox": "read-only"},
        ):  # fmt: skip
            answer = served.http.patch(f"/api/sessions/{session}", json={"settings": wrong})
            assert answer.status_code in (400, 403), wrong
        interpreter = served.hub.open(SessionKey("local", session)).interpreter
        assert (interpreter.mode, interpreter.sandbox, interpreter.llm.model) == ("plan", "workspace", "gpt-4o-mini")
        for place in ("..", "/etc", "a/../../b"):
            assert served.http.post("/api/sessions", json={"workspace": place}).status_code == 400
    with serving(mode="plan") as served:
        session = served.session()
        for mode, status in (("plan", 200), ("ask", 403)):
            answer = served.http.patch(f"/api/sessions/{session}", json={"settings": {"mode": mode}})
            assert answer.status_code == status, "only who started the server ends its plan mode"


def test_the_session_list_shows_running_and_waiting_sessions(home: Path) -> None:
    with serving(BLOCK, text("Done.")) as served:
        session = served.session()

        def row() -> tuple[bool, str, int]:
            found = served.http.get("/api/sessions").json()["sessions"][0]
            return found["live"], found["running"], found["waiting"]

        assert row() == (True, "", 0)
        served.say(session, "Go.")
        assert row() == (True, "A turn", 1)
        served.answer(session, "approve")
        until_idle(served, session)
        assert row() == (True, "", 0)
        live = served.hub.find(SessionKey("local", session))
        assert live is not None and served.hub.retire(live)
        assert row() == (False, "", 0)


def test_users_can_export_and_delete_all_their_data(home: Path) -> None:
    with serving(text("Hello.")) as served:
        anna, mine = served.user("anna"), served.session()
        session = anna.post("/api/sessions", json={"title": "Anna's"}).json()
        folder = Path(session["folder"])
        anna.post(
            f"/api/sessions/{session['id']}/run", json={"language": "python", "code": "open('a.txt', 'w').write('a')"}
        )
        copy = anna.post(f"/api/sessions/{session['id']}/fork").json()
        damaged = served.hub.root("anna") / "0123456789ab"
        damaged.mkdir()
        (damaged / NAME).write_bytes(b'{"event": "session", "time": "\xff')
        packed = zipfile.ZipFile(io.BytesIO(anna.get("/api/data").content))
        names = packed.namelist()
        assert f"conversations/{session['id']}/{NAME}" in names and f"workspaces/{folder.name}/a.txt" in names
        assert f"workspaces/copy-{copy['id']}/a.txt" in names
        assert anna.request("DELETE", "/api/data", json={"confirm": "yes"}).status_code == 400
        assert anna.request("DELETE", "/api/data", json={"confirm": "delete all my data"}).json() == {"deleted": 3}
        assert not folder.exists() and not Path(copy["folder"]).exists() and served.hub.ids("anna") == []
        assert anna.get("/api/sessions").json() == {"sessions": [], "complete": True}
        assert [row["id"] for row in served.http.get("/api/sessions").json()["sessions"]] == [mine]


def test_a_workspace_is_deleted_with_the_last_session_that_uses_it(home: Path) -> None:
    with serving() as served:
        anna = served.user("anna")
        first = anna.post("/api/sessions", json={}).json()
        second = anna.post(f"/api/sessions/{first['id']}/reset").json()
        fork = anna.post(f"/api/sessions/{first['id']}/fork").json()
        assert second["folder"] == first["folder"] != fork["folder"]
        anna.delete(f"/api/sessions/{first['id']}")
        assert Path(first["folder"]).is_dir(), "the second session uses it"
        for each in (second, fork):
            anna.delete(f"/api/sessions/{each['id']}")
            assert not Path(each["folder"]).exists()
        assert not Path(fork["folder"]).parent.exists()


def test_an_idle_session_sleeps_and_wakes_with_its_variables(home: Path) -> None:
    with serving(text("Hi."), server_idle_minutes=0.02) as served:
        session = served.session()
        served.run(session, "kept = [1, 2, 3]")
        key, seen = SessionKey("local", session), []
        with socket(served, session) as reader:
            until(lambda: served.hub.find(key) is None, "sleep")
            assert served.events(session), "a sleeping session can be read"
            assert served.hub.find(key) is None
            before = served.events(session)[-1]["number"]
            assert served.run(session, "print(kept)") == "[1, 2, 3]\n"
            while not texts(seen, "console", "computer"):
                seen.append(json.loads(reader.recv(60)))  # the same connection reads on
            numbers = [each["number"] for each in seen]
            assert numbers == sorted(numbers) and numbers[-1] > before


def test_the_number_of_live_sessions_is_limited(home: Path) -> None:
    with serving(server_max_sessions=2) as served:
        first, second = served.session(), served.session()
        served.session()  # puts the least recently used one to sleep
        assert (
            served.hub.find(SessionKey("local", first)) is None
            and served.hub.find(SessionKey("local", second)) is not None
        )
        served.hub.template.server_free_memory = 10**9
        answer = served.http.post("/api/sessions", json={})
        assert answer.status_code == 503 and answer.json()["error"]["type"] == "full"
        threads = [in_thread(served.hub.create, "local") for _ in range(4)]
        served.hub.template.server_free_memory = 0
        for thread, _ in threads:
            thread.join(60)
        assert len(served.hub._live) <= 2


def test_concurrent_creations_do_not_exceed_the_session_limit(home: Path) -> None:
    with serving(server_max_sessions=2) as served:
        release, ready = threading.Event(), threading.Barrier(8)
        # So that it can't be put to sleep.
        busy, done = in_thread(served.hub.create("local").do, "A test", lambda: release.wait(60))

        def enter() -> bool:
            ready.wait(60)
            try:
                with served.hub._reserve_slot():
                    return release.wait(60)
            except Refused as refused:
                return refused.status != 503

        tried = [in_thread(enter) for _ in range(8)]
        until(lambda: sum(found == [False] for _, found in tried) == 7, "seven of eight to be refused")
        release.set()
        for thread, _ in tried:
            thread.join(60)
        busy.join(60)
        assert done == [True] and sorted(found for _, found in tried) == [[False]] * 7 + [[True]]


def test_idle_sessions_keep_fewer_snapshots_when_more_are_live(home: Path) -> None:
    with serving(server_max_sessions=4) as served:
        session = served.session()
        for number in range(5):
            served.run(session, f"x = {number}")
        live = served.hub.find(SessionKey("local", session))
        assert live is not None
        python: Any = live.interpreter.computer.runtimes.runtime("python")
        until(lambda: len(python.runtime.snapshots.states) == 3, "fewer snapshots")
        others = [served.session() for _ in range(3)]
        until(lambda: not python.runtime.snapshots.states, "none")
        assert "Only this block is lost" in served.run(session, "import os; os._exit(1)")
        assert served.run(session, "print(x)") == "4\n" and len(others) == 3


@pytest.mark.full
def test_a_slow_reader_does_not_slow_others(home: Path) -> None:
    with serving(text("Quick.")) as served:
        session = served.session()
        code = "for _ in range(100): print('y' * 2000)"
        with socket(served, session) as slow, socket(served, session) as quick:
            for _ in range(15):  # more than the buffers of a connection hold
                served.run(session, code)
            frames: list[Any] = []
            for block in range(15):
                while not frames or frames[-1]["data"].get("outcome") != "done":
                    frames.append(json.loads(quick.recv(60)))
                frames.append(json.loads(quick.recv(60)) if block < 14 else frames[0])
            assert texts(frames, "console", "computer").count("y") == 3_000_000
            assert served.say(session, "More.")["messages"][-1]["content"] == "Quick."
            late = [json.loads(slow.recv(60))]
            while not ends_turn(late[-1]):
                late.append(json.loads(slow.recv(60)))
            assert texts(late, "console", "computer").count("y") == 3_000_000 and texts(late) == "Quick."


def test_two_sessions_answer_at_the_same_time(home: Path) -> None:
    gate = threading.Event()
    stalled = text("Slow ").then(text("end"))
    stalled = type(stalled)((stalled.deltas[0], Stall(gate), *stalled.deltas[1:]))
    with serving(stalled, text("Fast.")) as served:
        one, two = served.session(workspace="a"), served.session(workspace="b")
        served.http.post(f"/api/sessions/{one}/messages", json={"content": "Slowly."})
        assert served.model.stalled.wait(60)
        assert served.say(two, "Quickly.")["messages"][-1]["content"] == "Fast."
        gate.set()
        until_idle(served, one)
        assert texts(served.events(one)) == "Slow end"


def store(root: Path, count: int) -> None:
    """Write sessions as a server stores them, each newer than the previous."""
    for number in range(count):
        folder = root / f"{number:08x}"
        folder.mkdir()
        entry = {"event": "session", "time": number, "version": 1, "id": folder.name, "title": f"Number {number}"}
        (folder / NAME).write_text(json.dumps(entry) + "\n")
        os.utime(folder / NAME, (number, number))


def test_the_first_page_reads_only_the_sessions_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, go_on = list[str](), threading.Event()

    def counted(path: Path) -> Any:
        if len(read) >= 20:
            assert go_on.wait(60)
        read.append(path.name)
        return read_summary(path)

    store(tmp_path, 500)
    monkeypatch.setattr(sessions, "read_summary", counted)
    index = Index(tmp_path)
    rows, complete = index.rows("", 20, None)
    assert [row["title"] for row in rows] == [f"Number {number}" for number in range(499, 479, -1)]
    assert len(read) == 20 and not complete
    _, found = in_thread(index.rows, "number 12", 3, None)  # a search waits for all of them
    shutil.rmtree(tmp_path / f"{412:08x}")
    assert not found
    go_on.set()
    until(lambda: found, "the answer")
    assert [row["title"] for row in found[0][0]] == ["Number 312", "Number 212", "Number 129"] and found[0][1]
    assert len(read) == 500 and index.rows("", 20, None)[1]
    index.close()


def test_shared_sessions_are_searched_and_paged_like_owned_ones(home: Path) -> None:
    with serving() as served:
        anna = served.user("anna")
        own = anna.post("/api/sessions", json={"title": "My whales"}).json()["id"]
        given = served.session(title="His sharks")
        served.http.put(f"/api/sessions/{given}/share", json={"users": ["anna"]})

        def ids(**query: Any) -> list[str]:
            return [row["id"] for row in anna.get("/api/sessions", params=query).json()["sessions"]]

        assert ids() == [given, own] and ids(q="whales") == [own] and ids(q="SHARKS") == [given]
        newest = anna.get("/api/sessions", params={"limit": 1}).json()["sessions"]
        assert [row["id"] for row in newest] == [given] and newest[0]["live"]
        assert ids(before=newest[0]["updated"]) == [own] and ids(before=1) == []


@pytest.mark.full
def test_ten_thousand_stored_sessions_use_little_memory(tmp_path: Path) -> None:
    import resource

    store(tmp_path, 10_000)
    index = Index(tmp_path)
    began = time.monotonic()
    assert len(index.rows("", 100, None)[0]) == 100
    first = time.monotonic() - began
    index.refresh()
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    for _ in range(5):
        rows, complete = index.rows("number 998", 2, 9990.0)
        assert [row["title"] for row in rows] == ["Number 9989", "Number 9988"] and complete
    each = (time.monotonic() - began) / 5
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(f"first page {first:.2f} s, then {each:.2f} s a list, {grown} kB")
    assert grown < 30_000
    index.close()
