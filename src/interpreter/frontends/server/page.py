"""The web page: its files, and what only a page needs: text as HTML, frames for HTML that code made, a timeline.

The page has no inline scripts or styles, and its policy forbids them. Markdown and code are rendered here, with raw
HTML escaped. HTML that code displays is served for a frame with a separate origin: its scripts run, but they reach
neither the page, nor the server, nor the network.
"""

from __future__ import annotations

import mimetypes
import os
from functools import cache, partial
from pathlib import Path
from typing import Any

from starlette.responses import Response

from interpreter.export.documents import Renderer
from interpreter.frontends.server.gate import Refused
from interpreter.frontends.server.questions import clean, cut_diff
from interpreter.frontends.server.routes import (
    ANY,
    NUMBER,
    PART,
    SESSION_PATH,
    TEXT,
    UNDONE,
    VIEW,
    Route,
    ServerRequest,
    go_to_checkpoint,
    list_of,
    look_at,
    object_of,
)
from interpreter.host.files import Folder
from interpreter.runtimes import BUILT_IN
from interpreter.runtimes.state import TableQuery, TableWindow

WEB = Path(__file__).parent / "web"
_TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "frame-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
_FRAME_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:; "
    "font-src data:; media-src data: blob:; worker-src blob:; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'self'; sandbox allow-scripts"
)
_MAX_FRAME_BYTES = 30_000_000  # of HTML in one frame
_LIGHT, _DARK = "xcode", "github-dark"  # all colours of both are readable on the page's background
_FRAME = """<!doctype html><meta charset="utf-8"><style>
:root { color-scheme: %s; } body { margin: 12px; font: 14px/1.45 system-ui, sans-serif; }
table { border-collapse: collapse; border: 0; }
th, td { padding: .25rem .65rem; border: 0; border-bottom: 1px solid #8884; text-align: right; }
.dataframe :is(th, td) { white-space: nowrap; }
</style><script>
addEventListener("load", () => {
  const tell = () => parent.postMessage({ height: document.documentElement.getBoundingClientRect().height }, "*");
  new ResizeObserver(tell).observe(document.documentElement);
  tell();
});
</script>
"""


# -- files of the page ---------------------------------------------------------------------------------------------


async def show_web_file(call: ServerRequest) -> Any:
    name = call.request.path_params.get("path", "index.html")
    if name == "code.css":
        return Response(code_style(), media_type="text/css")
    known = {path.relative_to(WEB).as_posix(): path for path in WEB.rglob("*") if path.suffix in _TYPES}
    if name not in known:
        raise Refused(404, "not_found", "The page has no such file.")
    content = await call.server.reading(known[name].read_bytes)
    headers = {"content-security-policy": _POLICY} if name == "index.html" else {}
    return Response(content, media_type=_TYPES[known[name].suffix], headers=headers)


@cache
def code_style() -> str:
    """Return the colours of code: each class has one for light and one for dark."""
    from pygments.styles import get_style_by_name
    from pygments.token import STANDARD_TYPES

    light, dark = get_style_by_name(_LIGHT), get_style_by_name(_DARK)
    rules = []
    for token, name in STANDARD_TYPES.items():
        one, two = (style.style_for_token(token)["color"] for style in (light, dark))
        if not name or not (one or two) or name in ("err", "w"):
            continue
        value = f"light-dark(#{one}, #{two})" if one and two else "inherit"
        rules.append(f".code .{name} {{ color: {value}; }}\n")
    return "".join(rules)


# -- text as HTML ----------------------------------------------------------------------------------------------------


@cache
def _renderer() -> Renderer:
    return Renderer(BUILT_IN)


def render(call: ServerRequest) -> Any:
    renderer = _renderer()
    made = [
        renderer.markdown(item["text"])
        if item["kind"] == "markdown"
        else renderer.code(item["text"], item.get("language", ""))
        for item in call.body["items"]
    ]
    return {"html": made}


# -- frames ------------------------------------------------------------------------------------------------------------


def _framed(html: bytes, theme: str) -> Response:
    headers = {"content-security-policy": _FRAME_POLICY, "x-frame-options": "SAMEORIGIN"}
    return Response((_FRAME % theme).encode() + html, media_type="text/html; charset=utf-8", headers=headers)


async def show_html(call: ServerRequest) -> Any:
    """Serve HTML that code displayed, by the number of its event."""
    number = call.request.path_params["number"]
    events = await call.server.reading(call.server.hub.read, call.key(), number - 1, None, 1)
    pieces = [
        str(event.data.get("content") or "")
        for event in events
        if event.number == number and (event.kind, event.data.get("format")) == ("code", "html")
    ]
    if not pieces:
        raise Refused(404, "html", "This event has no HTML.")
    return _framed("".join(pieces).encode("utf-8", "replace"), call.query["theme"])


def preview_html(call: ServerRequest) -> Any:
    """Serve an HTML or SVG file of the workspace."""
    name = call.request.path_params["path"]
    with Folder(call.live().interpreter.workspace) as folder, folder.open(name) as file:
        if mimetypes.guess_type(name)[0] not in ("text/html", "image/svg+xml"):
            raise Refused(400, "file", "Only HTML and SVG files can be previewed here.")
        if os.fstat(file.fileno()).st_size > _MAX_FRAME_BYTES:
            raise Refused(413, "too_large", "This file is too large for a preview. Download it.")
        return _framed(file.read(_MAX_FRAME_BYTES), call.query["theme"])


# -- the grid ---------------------------------------------------------------------------------------------------------


def show_histograms(call: ServerRequest) -> Any:
    """Return histograms of some columns of a live table."""
    live = call.live()
    view = TableQuery(filter=call.query["filter"], find=call.query["find"], histograms=True)
    table = look_at(call, live, (0, 0), view)
    if not isinstance(table, TableWindow) or list(table.index) != ["low", "high", "bins", "words"]:
        raise Refused(400, "variable", "This value has no histograms.")
    histograms = []
    for low, high, bins, common in table.cells:
        counts = [int(each) for each in bins.split()]
        histograms.append({"low": low, "high": high, "bins": counts} if counts else {"words": common})
    return {"histograms": clean(live, histograms)}


# -- timeline ----------------------------------------------------------------------------------------------------------


def show_timeline(call: ServerRequest) -> Any:
    live = call.live()
    timeline, points = live.interpreter.timeline, []
    live.while_idle(timeline.adopt)  # a turn that has just begun makes its own checkpoint
    for point in timeline.checkpoints:
        changes = timeline.changes(point.id) if point.kind != "turn" else None
        paths = sorted(changes.pairs) if changes is not None else []
        row = {"id": point.id, "kind": point.kind, "label": point.label, "language": point.language}
        points.append({**row, "time": point.time, "files": paths[:50]})
    return clean(live, {"points": points, "places": timeline.places})


def show_diff(call: ServerRequest) -> Any:
    """Return what a block did to a file, as lines, or for a table as rows and cells."""
    live = call.live()
    diffs = live.interpreter.timeline.diff(call.request.path_params["number"], True)
    return clean(live, {"diff": cut_diff(diffs.get(call.query["path"], ""))})


_THEME = {"theme": {"type": "string", "enum": ["light", "dark", "light dark"], "default": "light dark"}}
_ITEM = object_of(
    "kind text", kind={"type": "string", "enum": ["markdown", "code"]}, text=TEXT, language={**TEXT, "default": ""}
)

ROUTES: list[Route] = [
    Route("GET", "/", show_web_file, "The web page", media="text/html"),
    Route("GET", "/web/{path:path}", show_web_file, "A file of the page", media="text/javascript"),
    Route(
        "POST",
        "/api/render",
        render,
        "Markdown and code as HTML",
        object_of("html", html=list_of(TEXT)),
        object_of("items", items=list_of(_ITEM)),
        kind="read",
    ),
    Route(
        "GET",
        f"{SESSION_PATH}/html/{{number:int}}",
        show_html,
        "HTML that code displayed",
        query=_THEME,
        media="text/html",
    ),
    Route(
        "GET", f"{SESSION_PATH}/preview/{{path:path}}", preview_html, "An HTML file", query=_THEME, media="text/html"
    ),
    Route(
        "GET",
        f"{SESSION_PATH}/variables/{{language}}/{{name}}/histograms",
        show_histograms,
        "The shape of columns of a live table",
        object_of("histograms", histograms=list_of(ANY)),
        query=VIEW,
    ),
    Route("GET", f"{SESSION_PATH}/timeline", show_timeline, "What can be undone", ANY),
    Route(
        "GET",
        f"{SESSION_PATH}/timeline/{{number:int}}/diff",
        show_diff,
        "What a block did to a file",
        object_of("diff", diff=TEXT),
        query={"path": {**TEXT, "default": ""}},
    ),
    Route(
        "POST",
        f"{SESSION_PATH}/restore",
        partial(go_to_checkpoint, "restore"),
        "Return to a point of the timeline",
        UNDONE,
        object_of("point", point=NUMBER, parts=list_of(PART), overwrite=list_of(TEXT)),
    ),
]
