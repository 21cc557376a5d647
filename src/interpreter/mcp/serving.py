"""Our sessions for MCP clients: they run code, read files and variables, undo and fork.

A client's code is judged as a model's: what needs approval becomes an elicitation, and is refused if the client has
none. A job may ask several times. In the generation with a handshake it waits for each answer; in the stateless one the
call ends with the question, and the client calls again with the answer and the number of the job.
"""

from __future__ import annotations

import asyncio
import base64
import copy
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, Any, Protocol, TypeVar, cast, get_args
from weakref import WeakKeyDictionary

from interpreter.api import OpenInterpreter
from interpreter.app import conversations, result_of
from interpreter.app.own_blocks import run_own_block
from interpreter.config.setting import give_settings, given_settings
from interpreter.console_text import visible
from interpreter.errors import InterpreterError, UsageError
from interpreter.host.files import Folder
from interpreter.messages import Chunk, fold
from interpreter.policy.review import CONTAIN, GRANT
from interpreter.questions import ANSWER, APPROVE, REFUSE, Answer, CallTool, Choose, Question, QuestionKind, RunBlock
from interpreter.session import Actor, Event, ToolCall
from interpreter.tools import FileEdit, Tool, ToolContext
from interpreter.tools.toolbox import problem_with_arguments
from interpreter.version import __version__

Result = TypeVar("Result")
KINDS: tuple[QuestionKind, ...] = get_args(QuestionKind)
ANSWER_TIMEOUT = 600.0  # seconds that a job of the stateless generation waits for its answer
PROGRESS_GAP = 0.2  # seconds between two reports
MAX_FILE_SIZE = 1_000_000
MAX_SESSIONS = 100  # in a listing
MAX_CONNECTIONS = 50  # of a user of the server, in the generation with a handshake
UNATTENDED = "it needs approval, and this client can't ask the user. Use -y, a sandbox or a rule"
INSTRUCTIONS = (
    "Live sessions on the user's computer: variables, imports and figures stay until the session ends. Calls without "
    "`session` use the same one. Look at results with small pieces of code instead of printing all of them. `undo` "
    "restores files and variables, and `fork` makes a copy to try something."
)
_SESSION = Annotated[str, "which session; the usual one if empty"]


# -- sessions ----------------------------------------------------------------------------------------------------------


class Live(Protocol):
    """A session that is open: the server's `LiveSession`, or an `OwnSession`."""

    key: Any  # whose `id` names it
    interpreter: OpenInterpreter

    def do(self, what: str, function: Callable[[], Result]) -> Result: ...


class OwnSession:
    """A session of the program that serves one client over its standard input and output."""

    def __init__(self, interpreter: OpenInterpreter) -> None:
        self.interpreter, self.id = interpreter, interpreter.journal.begin()
        self.key = self

    def do(self, what: str, function: Callable[[], Result]) -> Result:
        return function()


class OwnSessions:
    """The sessions of that program, with the settings of its command line, and those that are saved."""

    def __init__(self, template: OpenInterpreter) -> None:
        self._template, self._live = template, dict[str, OwnSession]()

    def rows(self) -> list[dict[str, Any]]:
        saved = conversations.list_conversations(self._template)[:MAX_SESSIONS]
        return [
            {"id": row.id, "title": row.title, "folder": row.facts.folder, "live": row.id in self._live}
            for row in saved
        ]

    def create(self) -> OwnSession:
        return self._keep(self._made() if self._live else self._template)

    def open(self, name: str) -> OwnSession:
        if name not in self._live:
            saved, interpreter = conversations.find_conversation(self._template, name), self._made()
            result_of(conversations.resume(interpreter, saved))
            with suppress(InterpreterError):
                interpreter.restore_variables()
            return self._keep(interpreter)
        return self._live[name]

    def fork(self, live: Live) -> OwnSession:
        return self._keep(live.interpreter.fork())

    def client(self, live: Live) -> Actor:
        return live.interpreter.user

    def close(self) -> None:
        for live in self._live.values():
            live.interpreter.save_variables_now()
            live.interpreter.computer.terminate()
            live.interpreter.journal.close()

    def _made(self) -> OpenInterpreter:
        made = OpenInterpreter()
        given = given_settings(self._template)
        given.pop("messages", None)
        give_settings(made, copy.deepcopy(given))
        made.messages, made.conversation_history = [], True
        return made

    def _keep(self, interpreter: OpenInterpreter) -> OwnSession:
        live = OwnSession(interpreter)
        return self._live.setdefault(live.id, live)


class ServerSessions:
    """One user's sessions on the server. Its `SessionManager` decides which are theirs and limits their number."""

    def __init__(self, hub: Any, user: Any) -> None:
        self._hub, self._user = hub, user

    def rows(self) -> list[dict[str, Any]]:
        return list(self._hub.rows(self._user, "", MAX_SESSIONS)[0])

    def create(self) -> Live:
        return cast(Live, self._hub.create(self._user.name))

    def open(self, name: str) -> Live:
        return cast(Live, self._hub.open(self._hub.locate(self._user, name, write=True)))

    def fork(self, live: Live) -> Live:
        return cast(Live, live.do("A fork", lambda: self._hub.fork(live, self.client(live))))

    def client(self, live: Any) -> Actor:
        return cast(Actor, live.actor(self._user))


Sessions = OwnSessions | ServerSessions


# -- one call ----------------------------------------------------------------------------------------------------------


class Job:
    """A call of a tool in a separate thread. What it reports, asks and returns is its `news`."""

    def __init__(self, work: Callable[[Job], Any], can_ask: bool) -> None:
        self.can_ask = can_ask
        self.news: asyncio.Queue[Any] = asyncio.Queue()
        self.question: Question | None = None  # the last one that went to the client
        self._loop = asyncio.get_running_loop()
        self._live: Live | None = None
        self._agent: Actor | None = None
        self._action = ""
        threading.Thread(target=self._run, args=(work,), name="mcp job", daemon=True).start()

    def _run(self, work: Callable[[Job], Any]) -> None:
        try:
            value = work(self)
        except BaseException as error:  # noqa: BLE001 - the client reads it
            value = error
        self._tell((value,))

    def _tell(self, news: Any) -> None:
        with suppress(RuntimeError):  # the program is ending
            self._loop.call_soon_threadsafe(self.news.put_nowait, news)

    @contextmanager
    def acting(self, live: Live, agent: Actor) -> Iterator[None]:
        """Let the client answer the questions of the agent's actions inside this context."""
        self._live, self._agent = live, agent
        with live.interpreter.session.questions.answerable(KINDS, self._ask):
            yield

    def follow(self, events: Iterator[Event]) -> list[Chunk]:
        """Read an action to its end, and report what it prints."""
        chunks, reported = list[Chunk](), 0.0
        for event in events:
            self._action = self._action or event.ids.action
            if (chunk := event.chunk) is None:
                continue
            chunks.append(chunk)
            is_text = chunk.get("format") == "output" and str(chunk.get("content")).strip()
            if is_text and self._live is not None and time.monotonic() - reported > PROGRESS_GAP:
                reported = time.monotonic()
                self._tell(self._live.interpreter.session.clean(str(chunk["content"])).strip()[-200:])
        return chunks

    def _ask(self, question: Question) -> Answer | None:
        if self._agent is None or question.actor != self._agent.id:
            return None  # of someone else
        if not self.can_ask or question.kind == "password":  # the protocol forbids forms for secrets
            return Answer(REFUSE, by="nobody")
        self.question = question
        self._tell(question)
        question.wait()  # for the client, or someone at the page
        self._tell(None)
        return question.answer or Answer(REFUSE, by="nobody")

    def cancel(self) -> None:
        """Cancel the job. Must be called from the loop's thread."""
        if self.question is not None:
            self.question.settle(Answer(REFUSE, by="nobody"))
        if self._live is not None and self._agent is not None:
            session = self._live.interpreter.session
            session.cancel(next((each for each in session.running if each.id == self._action), self._agent))


class Service:
    """The tools that one user can call. Methods with a `context` get their `Job`."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._usual = ""
        self._agents: WeakKeyDictionary[Live, Actor] = WeakKeyDictionary()
        self._lock = threading.RLock()
        acting = [Tool.function(each) for each in (self.run_code, self.write_file, self.undo, self.redo, self.fork)]
        reading = (self.read_file, self.list_files, self.variables, self.sessions)
        tools = [*acting, Tool.function(self.new_session), *(Tool.function(each, "reads") for each in reading)]
        self.tools = {tool.name: tool for tool in tools}

    def _session(self, name: str) -> Live:
        if name:
            return self._sessions.open(name)
        with self._lock:
            if self._usual:
                with suppress(Exception):  # it was deleted
                    return self._sessions.open(self._usual)
            live = self._sessions.create()
            self._usual = live.key.id
            return live

    def _agent(self, live: Live) -> Actor:
        """Return the client's model, which acts for the client and whose code is judged."""
        with self._lock:
            if live not in self._agents:
                own, session = live.interpreter.agent.actor, live.interpreter.session
                client = self._sessions.client(live)
                self._agents[live] = session.add_actor("agent", own.source, client, sink=own.sink, contain=own.contain)
            return self._agents[live]

    def _do(self, live: Live, what: str, job: Job, function: Callable[[Actor], Result]) -> Result:
        """Do something as the client's model, which may ask."""

        def act() -> Result:
            agent = self._agent(live)
            with job.acting(live, agent):
                return function(agent)

        return live.do(what, act)

    # -- tools ---------------------------------------------------------------------------------------------------------

    def run_code(self, code: str, context: Job, language: str = "python", session: _SESSION = "") -> list[Any]:
        """Run code in a live session, whose variables stay. Returns what it printed, and figures as images.

        Languages: python, shell, javascript and those that `language` names on this computer.
        """
        live = self._session(session)
        if live.interpreter.computer.get_language(language) is None:
            raise UsageError(f"There is no language {language!r} here.")

        def run(agent: Actor) -> list[Chunk]:
            return context.follow(run_own_block(live.interpreter, language, code, True, agent))

        return _contents(live, self._do(live, "A block", context, run), context.can_ask)

    def write_file(self, path: str, text: str, context: Job, session: _SESSION = "") -> list[Any]:
        """Write a text file in the folder of the session, so that `undo` covers it."""
        live = self._session(session)

        def effects(arguments: dict[str, Any]) -> Iterator[FileEdit]:
            before = ""
            with suppress(OSError, ValueError), Folder(live.interpreter.workspace) as folder:
                before = _read(folder, path).decode()
            yield FileEdit(path, before, text)

        def write(arguments: dict[str, Any], given: ToolContext) -> str:
            with given.files as folder:
                if above := path.rpartition("/")[0]:
                    folder.mkdir(above, parents=True, exist_ok=True)
                with folder.open(path, "wb") as file:
                    file.write(text.encode())
            return f"Wrote {path}."

        tool = Tool("write_file", "", {"type": "object"}, write, "acts", effects)

        def call(agent: Actor) -> list[Chunk]:
            return context.follow(live.interpreter.session.perform(ToolCall(tool, {"path": path}), agent))

        return _contents(live, self._do(live, "A file", context, call), context.can_ask)

    def read_file(self, path: str, session: _SESSION = "") -> list[Any]:
        """Read a file in the folder of the session: a text, or a PNG or JPEG picture."""
        with Folder(self._session(session).interpreter.workspace) as folder:
            data = _read(folder, path)
        for kind, start in (("png", b"\x89PNG"), ("jpeg", b"\xff\xd8\xff")):
            if data.startswith(start):
                return [{"type": "image", "data": base64.b64encode(data).decode(), "mimeType": f"image/{kind}"}]
        try:
            return [{"type": "text", "text": data.decode()}]
        except ValueError:
            raise UsageError(f"{path} is not a text. Read it with run_code.") from None

    def list_files(self, path: str = "", session: _SESSION = "") -> list[str]:
        """List a folder of the session's files; folders end with `/`."""
        with Folder(self._session(session).interpreter.workspace) as folder:
            names = sorted(folder.listdir(path.strip("/")))[:2000]
            return [f"{name}/" if folder.is_dir(f"{path.strip('/')}/{name}".lstrip("/")) else name for name in names]

    def variables(self, name: str = "", language: str = "python", session: _SESSION = "") -> list[Any]:
        """List the variables of all languages, or look at one: its text, or the first 50 rows of a table."""
        interpreter = self._session(session).interpreter
        rows = {} if name else interpreter.computer.variables()
        listed: Any = {language: [vars(each) for each in variables] for language, variables in rows.items()}
        value = vars(interpreter.computer.look(language, name)) if name else listed
        text = json.dumps(value, ensure_ascii=False, default=str)
        return [{"type": "text", "text": interpreter.session.clean(text)}]

    def undo(self, context: Job, count: int = 1, session: _SESSION = "") -> list[str]:
        """Undo the last blocks of code: files, variables and conversation. Files changed since then stay."""
        return self._go("undo", count, session, context)

    def redo(self, context: Job, count: int = 1, session: _SESSION = "") -> list[str]:
        """Redo what was undone."""
        return self._go("redo", count, session, context)

    def _go(self, name: str, count: int, session: str, job: Job) -> list[str]:
        live = self._session(session)
        going = getattr(live.interpreter, name)
        result = self._do(live, name.capitalize(), job, lambda agent: going(count, blocks=True, by=agent))
        return [*map(str, result.restored), *result.sentences] or ["There is nothing to go back to."]

    def fork(self, session: _SESSION = "") -> dict[str, str]:
        """Make a second session that continues from here in a copy of the folder; returns its id and folder."""
        forked = self._sessions.fork(self._session(session))
        return {"session": forked.key.id, "folder": forked.interpreter.workspace}

    def new_session(self, title: str = "") -> dict[str, str]:
        """Start another session, with no variables."""
        live = self._sessions.create()
        if title:
            live.interpreter.journal.rename(title)
        return {"session": live.key.id, "folder": live.interpreter.workspace}

    def sessions(self) -> list[dict[str, Any]]:
        """List the sessions, the newest first."""
        return self._sessions.rows()

    def job(self, name: str, arguments: dict[str, Any], can_ask: bool) -> Job:
        tool = self.tools[name]

        def work(job: Job) -> Any:
            if problem := problem_with_arguments(tool, arguments):
                raise UsageError(problem)
            return tool.handler(arguments, job)

        return Job(work, can_ask)


def _read(folder: Folder, path: str) -> bytes:
    with folder.open(path) as file:
        data = file.read(MAX_FILE_SIZE + 1)
    if len(data) > MAX_FILE_SIZE:
        raise UsageError(f"{path} has more than {MAX_FILE_SIZE:,} bytes. Read it with run_code.")
    return data


def _contents(live: Live, chunks: list[Chunk], can_ask: bool) -> list[Any]:
    """Turn what an action showed into content: text without secrets, and pictures. Raises what kept it from running."""
    for chunk in chunks:
        if chunk.get("type") == "decision" and chunk.get("format") in ("denied", "declined"):
            reason = chunk["content"].get("reason") or ("the user said no" if can_ask else UNATTENDED)
            raise UsageError(f"Not run: {reason.rstrip('.')}.")
    contents: list[Any] = []
    for message in fold(chunks, live.interpreter.max_output):
        content = message.get("content")
        if message.get("role") != "computer" or not content or message["type"] not in ("console", "image", "code"):
            continue
        if message["type"] == "image":
            kind = str(message.get("format")).removeprefix("base64.").replace("base64", "png")
            contents.append({"type": "image", "data": content, "mimeType": f"image/{kind}"})
        else:
            contents.append({"type": "text", "text": live.interpreter.session.clean(str(content))})
    return contents or [{"type": "text", "text": "(no output)"}]


# -- questions as forms ------------------------------------------------------------------------------------------------


def form_of(question: Question) -> tuple[str, dict[str, Any], dict[str, Answer]]:
    """Return a question's text, the schema of its form, and what each choice means; without choices it takes a text."""
    subject = question.subject
    answers: dict[str, Answer] = {"yes": Answer(APPROVE), "no": Answer(REFUSE)}
    text = question.text
    match subject:
        case RunBlock():
            details = [*(subject.effects or ()), *(f"It asks for: {each}" for each in subject.wants)]
            details += [str(each.get("text") or each) for each in subject.findings or ()]
            parts = [f"Run this {subject.language} code?", subject.code, *details, subject.reason]
            text = "\n".join(filter(None, parts))
            more = {"yes, in a sandbox": Answer(CONTAIN), "yes, with what it asks for": Answer(GRANT, scope="block")}
            answers |= {label: answer for label, answer in more.items() if answer.choice in question.choices}
        case CallTool() if subject.for_session:
            answers["yes, always in this session"] = Answer(APPROVE, scope="session")
        case Choose():
            answers = {option: Answer(option) for option in subject.options}
    if question.kind == "text":
        answers = {}
    field: dict[str, Any] = {"type": "string", "title": "Answer"}
    if answers:
        field["enum"] = list(answers)
    return visible(text), {"type": "object", "properties": {"answer": field}, "required": ["answer"]}, answers


def answer_in(question: Question, response: Any) -> Answer:
    """Read what the client answered; anything but a clear answer is a no."""
    answers = form_of(question)[2]
    given = (response.content or {}).get("answer") if getattr(response, "action", "") == "accept" else None
    if not isinstance(given, str):
        return Answer(REFUSE)
    return answers.get(given, Answer(REFUSE)) if answers else Answer(ANSWER, given)


# -- the protocol ------------------------------------------------------------------------------------------------------


def make_server(service: Service) -> Any:
    """Make the SDK's server, which speaks both generations."""
    from mcp import types
    from mcp.server.lowlevel import Server
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    jobs: dict[str, Job] = {}

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=tool.name,
                    description=tool.description,
                    input_schema=dict(tool.schema),
                    annotations=types.ToolAnnotations(read_only_hint=tool.policy == "reads", open_world_hint=False),
                )
                for tool in service.tools.values()
            ]
        )

    async def call_tool(context: Any, params: Any) -> Any:
        is_modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
        job = jobs.pop(params.request_state, None) if params.request_state else None
        if params.request_state and job is None:
            return _failed(types, "This question is no longer open.")
        if job is None:
            if params.name not in service.tools:
                return _failed(types, f"There is no tool {params.name!r}.")
            capabilities = context.session.client_capabilities
            can_ask = capabilities is not None and capabilities.elicitation is not None
            job = service.job(params.name, params.arguments or {}, can_ask)
        elif job.question is not None:
            job.question.settle(answer_in(job.question, (params.input_responses or {}).get("answer")))
        reports, form = 0, None

        async def ask(question: Question) -> None:
            message, schema, _ = form_of(question)
            with suppress(Exception):  # a client that fails to answer has not agreed
                response = await context.session.elicit_form(message, schema, context.request_id)
                question.settle(answer_in(question, response))
            question.settle(Answer(REFUSE, by="nobody"))

        try:
            while True:
                match await job.news.get():
                    case Question() as question if is_modern:
                        message, schema, _ = form_of(question)
                        asked = types.ElicitRequestFormParams(message=message, requested_schema=schema)
                        state, later = secrets.token_hex(16), asyncio.get_running_loop().call_later
                        jobs[state] = job
                        later(ANSWER_TIMEOUT, jobs.pop, state, None)
                        later(ANSWER_TIMEOUT, question.settle, Answer(REFUSE, by="nobody"))
                        return types.InputRequiredResult(
                            input_requests={"answer": types.ElicitRequest(params=asked)}, request_state=state
                        )
                    case Question() as question:
                        form = asyncio.create_task(ask(question))
                    case None if form is not None:
                        form.cancel()
                    case str() as text:
                        reports += 1
                        await context.session.report_progress(reports, None, text)
                    case (value,):
                        return _result(types, value)
        except BaseException:
            job.cancel()
            raise
        finally:
            if form is not None:
                form.cancel()

    return Server(
        "open-interpreter",
        version=__version__,
        title="Open Interpreter",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _result(types: Any, value: Any) -> Any:
    if isinstance(value, BaseException):
        is_ours = isinstance(value, (InterpreterError, OSError)) or type(value).__module__.startswith("interpreter.")
        return _failed(types, str(value) if is_ours else f"It failed: {type(value).__name__}.")
    if isinstance(value, list) and value and all(isinstance(each, dict) and "type" in each for each in value):
        return types.CallToolResult.model_validate({"content": value})
    return types.CallToolResult(content=[types.TextContent(text=json.dumps(value, ensure_ascii=False, default=str))])


def _failed(types: Any, text: str) -> Any:
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)


async def serve_stdio(template: OpenInterpreter) -> None:
    """Serve one client over standard input and output until it leaves."""
    from mcp.server.stdio import stdio_server

    sessions = OwnSessions(template)
    server = make_server(Service(sessions))
    try:
        async with stdio_server() as (received, sending):
            await server.run(received, sending, server.create_initialization_options())
    finally:
        await asyncio.to_thread(sessions.close)


_managers: dict[tuple[int, str], tuple[Any, Any, asyncio.Future[None], asyncio.Task[None]]] = {}


async def application(hub: Any, user: Any) -> Any:
    """Return the ASGI application that serves a user of the server; a connection of one is none of another's."""
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    known = _managers.get((id(hub), user.name))
    if known is None or known[0] is not hub:
        server = make_server(Service(ServerSessions(hub, user)))
        manager = StreamableHTTPSessionManager(server, max_sessions=MAX_CONNECTIONS)
        ready = asyncio.get_running_loop().create_future()

        async def run() -> None:
            async with manager.run():
                ready.set_result(None)
                await asyncio.Event().wait()

        known = _managers[id(hub), user.name] = hub, manager, ready, asyncio.create_task(run())
    await asyncio.shield(known[2])
    return known[1].asgi_app
