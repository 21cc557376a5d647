"""The forty browser tasks of tests/browser, with ours and with Playwright's MCP server: success, tokens, seconds.

`python -m bench.browser_tasks` runs ours; `--mcp` also installs @playwright/mcp from npm into a temporary folder.
`python -m bench --full` has both as rows. A token counts as four characters of text for the model. Tasks about
Markdown run only with ours.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from bench.subject import ProbeFailure, Subject, once  # noqa: E402
from bench.table import Measurement  # noqa: E402
from browser.tasks import TASKS, Task  # noqa: E402
from browser.test_tasks import perform  # noqa: E402
from browser.web_app import WebApp, serving  # noqa: E402


class Outcome(NamedTuple):
    kind: str
    name: str
    failure: str
    tokens: int
    steps: int
    seconds: float


class Failed(Exception):
    pass


def outcome(task: Task, app: WebApp, run: Callable[[Task, str], list[str]]) -> Outcome:
    app.pages["/task"] = f"<title>{task.name}</title><main>{task.page}</main>"
    began, shown, failure = time.monotonic(), [], ""
    try:
        shown = run(task, f"{app.url}/task")
        hidden = [given[0] for what, *given in task.steps if what == "never"]
        if any(words in each for words in hidden for each in shown):
            failure = "what is hidden was shown"
    except Exception as error:  # noqa: BLE001 - any failure of a tool is a result
        failure = " ".join(str(error).split())[:90] or type(error).__name__
    return Outcome(task.kind, task.name, failure, sum(map(len, shown)) // 4, len(shown), time.monotonic() - began)


# -- ours --------------------------------------------------------------------------------------------------------------


def with_ours(folder: Path, app: WebApp) -> list[Outcome]:
    from interpreter import OpenInterpreter

    browser: Any = OpenInterpreter(workspace=str(folder)).computer.browser
    browser.go_to_url(f"{app.url}/article")

    def run(task: Task, url: str) -> list[str]:
        shown = perform(browser, task, url)
        if browser.evaluate(task.check)["value"] is not True:
            raise Failed("the page is not as it should be")
        return shown

    try:
        return [outcome(task, app, run) for task in TASKS]
    finally:
        browser.quit()


# -- Playwright's MCP server -------------------------------------------------------------------------------------------


class Mcp:
    def __init__(self, folder: Path) -> None:
        environment = os.environ | {"PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD": "1"}
        install = ["npm", "install", "--silent", "--no-audit", "--no-fund", "@playwright/mcp"]
        subprocess.run(install, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
        program = [str(folder / "node_modules" / ".bin" / "playwright-mcp"), "--headless", "--isolated", "--no-sandbox"]
        program += ["--executable-path", shutil.which("chromium") or "chromium", "--caps", "vision"]
        program += ["--output-dir", str(folder / "output")]
        self.process = subprocess.Popen(
            program, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.number, self.folder = 0, folder
        about = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self.request("initialize", about)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        tools = self.request("tools/list", {})["tools"]
        self.parameters = {tool["name"]: set(tool["inputSchema"]["properties"]) for tool in tools}
        self.last = ""

    def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def request(self, method: str, given: dict[str, Any]) -> Any:
        self.number += 1
        self.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": given})
        assert self.process.stdout is not None
        for line in self.process.stdout:
            answer = json.loads(line)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise Failed(str(answer["error"]))
                return answer["result"]
        raise Failed("the server ended")

    def call(self, told: list[str], tool: str, **given: Any) -> str:
        known = self.parameters[tool]
        result = self.request("tools/call", {"name": tool, "arguments": {k: v for k, v in given.items() if k in known}})
        text = "\n".join(part.get("text", "") for part in result["content"])
        for file in re.findall(r"\(([^)]*\.yml)\)", text):  # a snapshot file that the model would open
            path = Path(file) if Path(file).is_absolute() else self.folder / file
            if path.exists():
                text += path.read_text("utf-8")
        told.append(text)
        if result.get("isError"):
            raise Failed(text)
        if "[ref=" in text:
            self.last = text
        return text

    def find(self, told: list[str], name: str) -> dict[str, str]:
        """Find the element with that name in the last snapshot; if missing, wait for it and take a new one."""
        for left in (1, 0):
            lines = [line for line in self.last.splitlines() if f'"{name}"' in line and "[ref=" in line]
            lines += [line for line in self.last.splitlines() if name in line and "[ref=" in line]
            if lines:
                ref = re.search(r"\[ref=(\w+)\]", lines[0])[1]  # type: ignore[index]
                return {"element": name, "ref": ref, "target": ref}
            if left:
                self.call(told, "browser_wait_for", text=name)
                self.call(told, "browser_snapshot")
        raise Failed(f"{name} is not in the snapshot")

    def run(self, task: Task, url: str) -> list[str]:
        shown: list[str] = []
        self.last = ""
        self.call(shown, "browser_navigate", url=url)
        for what, *given in task.steps:
            if what in ("click", "double", "accept", "upload"):
                self.call(shown, "browser_click", **self.find(shown, given[0]), doubleClick=what == "double")
                if what == "upload":
                    self.call(shown, "browser_file_upload", paths=[str(self.folder / given[1])])
                elif what == "accept":
                    self.call(shown, "browser_handle_dialog", accept=True)
            elif what == "hover":
                self.call(shown, "browser_hover", **self.find(shown, given[0]))
            elif what == "fill":
                self.call(shown, "browser_type", **self.find(shown, given[0]), text=given[1])
            elif what == "select":
                self.call(shown, "browser_select_option", **self.find(shown, given[0]), values=[given[1]])
            elif what == "press":
                self.call(shown, "browser_press_key", key=given[0])
            elif what == "drag":
                ends = {side: self.find(shown, name) for side, name in zip(("start", "end"), given, strict=True)}
                names = {f"{side}{key.title()}": value for side, end in ends.items() for key, value in end.items()}
                self.call(shown, "browser_drag", **names)
            elif what == "scroll":
                self.call(shown, "browser_mouse_wheel", deltaX=0, deltaY=600)
            elif what == "at":
                place = self.call(shown, "browser_evaluate", function=PLACE)
                left, top = map(float, re.search(r"place (\S+) (\S+) end", place).groups())  # type: ignore[union-attr]
                self.call(shown, "browser_mouse_click_xy", element=given[0], x=left + given[1], y=top + given[2])
            else:
                seen = self.call(shown, "browser_snapshot")
                if (given[0] in seen) != (what == "see"):
                    raise Failed(f"{what} {given[0]}")
        passed = self.call([], "browser_evaluate", function=f"() => 'passed ' + ({task.check}) + ' end'")
        if "passed true end" not in passed:
            raise Failed("the page is not as it should be")
        return shown


PLACE = "() => { const b = document.querySelector('canvas').getBoundingClientRect(); return `place ${b.x} ${b.y} end` }"


def with_mcp(folder: Path, app: WebApp) -> list[Outcome]:
    server = Mcp(folder)
    try:
        server.call([], "browser_navigate", url=f"{app.url}/article")
        return [outcome(task, app, server.run) for task in TASKS if task.kind != "reading"]
    finally:
        server.process.terminate()
        server.process.wait()


TOOLS: dict[str, Callable[[Path, WebApp], list[Outcome]]] = {"ours": with_ours, "@playwright/mcp": with_mcp}


@once
def outcomes(tool: str) -> list[Outcome]:
    for program in ("chromium", *(("npm",) if tool != "ours" else ())):
        if shutil.which(program) is None:
            raise ProbeFailure(f"needs {program}")
    with serving() as app, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "task.txt").write_text("text")
        try:
            return TOOLS[tool](folder, app)
        except subprocess.CalledProcessError as error:
            raise ProbeFailure("npm could not install it") from error


def typical_tokens(found: list[Outcome]) -> float:
    return median(each.tokens / each.steps for each in found if each.steps)


def rows(tool: str) -> list[Measurement]:
    def row(what: str, unit: str, of: Callable[[list[Outcome]], float], budget: float | None = None) -> Measurement:
        def measure(subject: Subject) -> float:
            if subject.is_original:
                raise ProbeFailure("has no such browser")
            return of(outcomes(tool))

        return Measurement(f"browser, {tool}: {what}", unit, measure, budget=budget if tool == "ours" else None)

    return [
        row("tasks that failed", "tasks", lambda found: sum(bool(each.failure) for each in found), budget=0),
        row("tokens per step, median of the tasks", "tokens", typical_tokens),
        row("all tasks", "s", lambda found: sum(each.seconds for each in found)),
    ]


MEASUREMENTS = [row for tool in TOOLS for row in rows(tool)]


def main() -> None:
    results = {tool: outcomes(tool) for tool in TOOLS if tool == "ours" or "--mcp" in sys.argv}
    print(f"{'kind':10}" + "".join(f"{tool:>18}" for tool in results))
    kinds = dict.fromkeys(task.kind for task in TASKS)
    for kind in kinds:
        done = {tool: [each for each in attempts if each.kind == kind] for tool, attempts in results.items()}
        cells = [f"{sum(not each.failure for each in attempts)} of {len(attempts)}" for attempts in done.values()]
        print(f"{kind:10}" + "".join(f"{cell:>18}" for cell in cells))
    for tool, attempts in results.items():
        totals: dict[str, float] = defaultdict(float)
        for each in attempts:
            totals["done"] += not each.failure
            totals["tokens"] += each.tokens
            totals["steps"] += each.steps
            totals["seconds"] += each.seconds
        per = totals["tokens"] / max(totals["steps"], 1)
        middle = typical_tokens(attempts)
        print(f"\n{tool}: {totals['done']:g} of {len(attempts)} done, {per:.0f} tokens per step", end="")
        print(f" (median of the tasks: {middle:.0f})", end="")
        print(f" ({totals['steps']:g} steps), {totals['seconds']:.0f} s")
        for each in attempts:
            if each.failure:
                print(f"  {each.kind}, {each.name}: {each.failure}")


if __name__ == "__main__":
    main()
