"""Seconds and memory to open a session of many blocks, and to list many sessions."""

import json
import resource
import shutil
import tempfile
import time
from pathlib import Path

from common import ARGUMENTS, report

from interpreter.session.journal import SavedSession, listed


def entries(blocks):
    yield {"event": "session", "time": 1.0, "id": "x", "title": "Many blocks", "folder": "/", "model": "scripted"}
    for number in range(blocks):
        at, now = 3 * number, 2.0 + number
        message = {"role": "assistant", "type": "message", "content": f"Step {number}: the next one, and I print it."}
        code = {"role": "assistant", "type": "code", "format": "python", "content": f"x = f({number})\nprint(x)\n"}
        output = {"role": "computer", "type": "console", "format": "output", "content": f"{number} " * 40 + "\n"}
        total = {"requests": number, "input_tokens": 1000 * number, "output_tokens": 20 * number, "cost": 0.1}
        yield {"event": "message", "time": now, "at": at, "message": message}
        yield {"event": "message", "time": now, "at": at + 1, "message": code}
        yield {"event": "block", "time": now, "block": number + 1, "at": at + 1}
        yield {"event": "decision", "time": now, "block": number + 1, "decision": "approved", "by": "user"}
        yield {"event": "message", "time": now, "at": at + 2, "message": output}
        yield {"event": "ended", "time": now, "block": number + 1, "ended": "done", "exit_code": 0, "seconds": 0.1}
        yield {"event": "usage", "time": now, "used": {"input_tokens": 1000}, "total": total}


root = Path(tempfile.mkdtemp(prefix="bench-sessions-"))
many = root / "many"
many.mkdir()
with open(many / "journal.jsonl", "w") as file:
    file.writelines(json.dumps(entry) + "\n" for entry in entries(ARGUMENTS["blocks"]))
size = (many / "journal.jsonl").stat().st_size
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
began = time.perf_counter()
session = SavedSession.open(many)
seconds = time.perf_counter() - began
megabytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
assert len(session.messages) == 3 * ARGUMENTS["blocks"]
shutil.rmtree(many)
for number in range(ARGUMENTS["sessions"]):
    (root / str(number)).mkdir()
    with open(root / str(number) / "journal.jsonl", "w") as file:
        file.writelines(json.dumps(entry) + "\n" for entry in entries(3))
began = time.perf_counter()
assert len(listed(root)) == ARGUMENTS["sessions"]
listing = time.perf_counter() - began
shutil.rmtree(root)
report(seconds=seconds, megabytes=megabytes, per_byte=megabytes * 1024 * 1024 / size, listing=listing)
