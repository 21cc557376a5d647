"""A server under load: many live sessions, many readers, many stored sessions; all on this machine."""

import asyncio
import collections
import json
import os
import signal
import statistics
import subprocess
import sys
import time

import httpx
from common import ARGUMENTS, report
from websockets.asyncio.client import connect

TOKEN = "a token for this measurement only"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
PROFILE = """
auto_run: true
offline: true
server_rate: 1000000
server_max_sessions: 200
computer:
  preload: [%s]
"""
MODULES = "numpy, pandas, matplotlib.pyplot"


def descendants(pid):
    """Return a process and all its descendants."""
    children = collections.defaultdict(list)
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as file:
                    children[int(file.read().rpartition(")")[2].split()[1])].append(int(name))
            except OSError:
                continue
    family, waiting = [], [pid]
    while waiting:
        family.append(waiting.pop())
        waiting += children[family[-1]]
    return family


def megabytes(pid):
    """Measure the memory of a process and all its descendants; shared memory counts once."""
    total = 0
    for each in descendants(pid):
        try:
            with open(f"/proc/{each}/smaps_rollup") as file:
                total += next(int(line.split()[1]) for line in file if line.startswith("Pss:"))
        except (OSError, StopIteration):
            continue
    return total / 1024


def store(count):
    """Write sessions of an earlier run, in the journal's format."""
    from interpreter import OpenInterpreter

    interpreter = OpenInterpreter()
    interpreter.messages = [{"role": "user", "type": "message", "content": "What is in numbers.csv?"}]
    name = interpreter.journal.begin()
    interpreter.journal.rename("What is in numbers.csv?")
    source = interpreter.journal.path
    interpreter.journal.close()
    content = {each.name: each.read_bytes() for each in source.iterdir() if each.is_file()}
    for number in range(count):
        folder = source.parent / f"{number:08x}"
        if folder.name != name:
            folder.mkdir()
            for file, data in content.items():
                (folder / file).write_bytes(data)


class Served:
    def __init__(self, preload):
        with open("load.yaml", "w") as file:
            file.write(PROFILE % (MODULES if preload else ""))
        flags = ["--serve", "--port", "0", "--profile", "load.yaml", "--model", "openai/none", "--api_key", "none"]
        command = [sys.executable, "-m", "interpreter", *flags]
        env = {**os.environ, "INTERPRETER_API_KEY": TOKEN}
        self.process = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        for line in self.process.stderr:
            if "Listening" in line:
                self.url = line.split()[2].rstrip(".")
            if "For scripts" in line:
                break
        self.http = httpx.Client(base_url=self.url, headers=HEADERS, timeout=120, trust_env=False)

    def session(self):
        made = self.http.post("/api/sessions", json={})
        assert made.status_code == 201, made.text
        return made.json()["id"]

    def run(self, session, code):
        """Seconds for a block, as measured by its client."""
        began = time.perf_counter()
        done = self.http.post(f"/api/sessions/{session}/run", json={"language": "python", "code": code})
        assert done.status_code == 200, done.text
        return time.perf_counter() - began

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(120)


def live():
    """Sessions that have run some blocks: their total memory, and the response time of one."""
    served = Served(ARGUMENTS["preload"])
    count, taken = ARGUMENTS["sessions"], []
    try:
        empty = megabytes(served.process.pid)
        sessions = [served.session() for _ in range(count)]
        for session in sessions:
            served.run(session, f"import {MODULES}; x = 1")
        for session in sessions * 2:
            time.sleep(0.1)  # until the previous block's snapshot is taken: this measures a response, not a queue
            taken.append(served.run(session, "x += 1; x"))
        time.sleep(3)  # until the variables are saved
        total = megabytes(served.process.pid)
    finally:
        served.close()
    ordered = sorted(taken)
    slowest = ordered[int(len(ordered) * 0.99)]
    report(total=total, each=(total - empty) / count, median=statistics.median(taken), slowest=slowest)


def readers():
    """Idle readers, and sessions that print constantly: the delay until a printed line arrives."""
    served = Served(False)
    streaming, idle, lines = ARGUMENTS["streaming"], ARGUMENTS["readers"], ARGUMENTS["lines"]
    late = []

    def opened(session):
        address = served.url.replace("http", "ws", 1) + f"/api/sessions/{session}/events?after=0"
        return connect(address, additional_headers=HEADERS, proxy=None, compression=None, open_timeout=60)

    async def follow(session):
        async with opened(session) as socket:
            seen = 0
            while seen < lines:
                data = json.loads(await socket.recv())["data"]
                now, console = time.time(), data.get("type") == "console"
                sent = [word[4:] for word in str(data.get("content", "")).split() if console and word[:4] == "sent"]
                late.extend(now - float(each) for each in sent)
                seen += len(sent)

    async def both():
        sessions, quiet = [[served.session() for _ in range(streaming)] for _ in range(2)]
        for session in sessions:
            served.run(session, "import time")
        before = megabytes(served.process.pid)
        waiting = []
        for first in range(0, idle, 20):
            waiting += await asyncio.gather(*(opened(quiet[n % streaming]) for n in range(first, first + 20)))
        memory = (megabytes(served.process.pid) - before) / idle
        measured = [asyncio.create_task(follow(session)) for session in sessions]
        code = f"for _ in range({lines}):\n    print(f'sent{{time.time()}}', flush=True)\n    time.sleep(0.1)"
        async with httpx.AsyncClient(base_url=served.url, headers=HEADERS, timeout=120, trust_env=False) as http:
            body = {"language": "python", "code": code}
            await asyncio.gather(*(http.post(f"/api/sessions/{session}/run", json=body) for session in sessions))
        await asyncio.wait_for(asyncio.gather(*measured), 60)
        await asyncio.gather(*(socket.close() for socket in waiting))
        return memory

    try:
        memory = asyncio.run(both())
    finally:
        served.close()
    ordered = sorted(late)
    report(each=memory, median=statistics.median(late), slowest=ordered[int(len(ordered) * 0.99)])


def stored():
    """Sessions on disk: the server's memory, and the times of first and later lists and searches."""
    empty = Served(False)
    try:
        empty.http.get("/api/sessions")
        without = megabytes(empty.process.pid)
    finally:
        empty.close()
    store(ARGUMENTS["sessions"])
    served, taken = Served(False), []
    try:
        for query in ("", "numbers", "", "", "numbers"):  # the first search waits until all are read
            began = time.perf_counter()
            sessions = served.http.get("/api/sessions", params={"q": query, "limit": 50}).json()["sessions"]
            taken.append(time.perf_counter() - began)
            assert len(sessions) == 50, len(sessions)
        grown = megabytes(served.process.pid) - without
    finally:
        served.close()
    report(first=taken[0], reading=taken[1], listing=min(taken[2:4]), searching=taken[4], grown=grown)


def jupyter():
    """Run the same blocks in kernels of a Jupyter server."""
    flags = ["--no-browser", "--ip=127.0.0.1", "--port=0", f"--IdentityProvider.token={TOKEN}", "--allow-root"]
    flags += ["--ServerApp.allow_remote_access=False", "--ServerApp.log_level=ERROR"]
    process = subprocess.Popen([sys.executable, "-m", "jupyter_server", *flags], stdin=subprocess.DEVNULL)
    try:
        folder = subprocess.run(
            [sys.executable, "-m", "jupyter_core", "--runtime-dir"], capture_output=True, text=True, check=True
        ).stdout.strip()
        file, end = os.path.join(folder, f"jpserver-{process.pid}.json"), time.monotonic() + 60
        while not os.path.exists(file) and time.monotonic() < end:
            time.sleep(0.1)
        with open(file) as opened:
            url = json.load(opened)["url"].rstrip("/")
        http = httpx.Client(base_url=url, headers={"Authorization": f"token {TOKEN}"}, timeout=120, trust_env=False)
        empty, count = megabytes(process.pid), ARGUMENTS["sessions"]
        kernels = [http.post("/api/kernels", json={}).json()["id"] for _ in range(count)]

        async def run(kernel, code):
            address = url.replace("http", "ws", 1) + f"/api/kernels/{kernel}/channels?session_id=measured"
            message = {
                "header": {"msg_id": os.urandom(8).hex(), "msg_type": "execute_request", "version": "5.3"},
                "parent_header": {},
                "metadata": {},
                "channel": "shell",
                "content": {"code": code, "silent": False, "store_history": True, "allow_stdin": False},
            }
            message["header"] |= {"session": "measured", "username": "bench", "date": ""}
            headers = {"Authorization": f"token {TOKEN}"}
            async with connect(address, additional_headers=headers, proxy=None, max_size=None) as socket:
                began = time.perf_counter()
                await socket.send(json.dumps(message))
                while True:
                    answer = json.loads(await socket.recv())
                    if answer["parent_header"].get("msg_id") != message["header"]["msg_id"]:
                        continue
                    if answer["msg_type"] == "execute_reply":
                        return time.perf_counter() - began

        async def measure():
            for kernel in kernels:
                await run(kernel, f"import {MODULES}; x = 1")
            taken = []
            for kernel in kernels * 2:
                await asyncio.sleep(0.1)  # as with our sessions
                taken.append(await run(kernel, "x += 1; x"))
            return taken

        taken = asyncio.run(measure())
        total = megabytes(process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
    report(each=(total - empty) / count, median=statistics.median(taken))


{"live": live, "readers": readers, "stored": stored, "jupyter": jupyter}[ARGUMENTS["what"]]()
