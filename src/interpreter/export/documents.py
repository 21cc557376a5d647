"""The conversation as a document: Markdown with its pictures in files beside it, or one HTML page.

The page has highlighted code and embedded figures, and loads nothing from the network. What code displayed as HTML is
in frames that cannot reach the page; everything else is escaped.
"""

from __future__ import annotations

import base64
import mimetypes
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape, unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from interpreter.export import Document, ExportedConversation, pictures_folder
from interpreter.host.files import read_bytes
from interpreter.messages import Message
from interpreter.runtimes import Registry
from interpreter.session.journal.reader import Entry, RecordedBlock, RecordedToolCall, Said, Shown

IMAGE_FORMATS = {"base64": "image/png", "base64.png": "image/png", "base64.jpeg": "image/jpeg"}
SVG = "image/svg+xml"

_OBJECT = re.compile(r"<[\w.]+(?: object)?(?: at 0x[0-9a-fA-F]+)?>|<Figure size .*>|<Figure.*Axes>")
_STYLE = re.compile(r"<(style|script)\b.*?</\1\s*>", re.DOTALL | re.IGNORECASE)
_SHAPE = re.compile(r"\[?\d+ rows [x×] \d+ columns\]?")


# -- what a block put out, in the forms that a document can hold -------------------------------------------------------


@dataclass(frozen=True)
class PlainText:
    """Printed output, or the text form of a display with this MIME type."""

    text: str
    mime: str = ""


@dataclass(frozen=True)
class ImageFile:
    mime: str
    content: bytes

    @property
    def data(self) -> str:
        """Return the source of an SVG, and base64 for other formats."""
        return self.content.decode("utf-8", "replace") if self.mime == SVG else base64.b64encode(self.content).decode()


@dataclass(frozen=True)
class Page:
    html: str


Output = PlainText | ImageFile | Page


def outputs_of(messages: Sequence[Message], richest: bool = True) -> list[Output]:
    """List all outputs in order.

    By default, the printed text form of a table or picture is dropped if the display itself follows.
    """
    outputs: list[Output] = []
    for message in messages:
        for output in _read(message):
            before = outputs[-1] if outputs else None
            if richest and not isinstance(output, PlainText) and isinstance(before, PlainText) and not before.mime:
                outputs[-1:] = _shortened(before, output)
            outputs.append(output)
    return outputs


def _read(message: Message) -> Iterator[Output]:
    content, form, mime = message.get("content"), message.get("format", ""), message.get("mime", "")
    if not isinstance(content, str) or not content:
        return
    match message.get("type"):
        case "image":
            yield (picture(message) if form != "path" else None) or PlainText(content)
        case "code":
            yield Page(content) if form == "html" else PlainText(content, "application/javascript")
        case "console" if mime == SVG:
            yield ImageFile(SVG, content.encode("utf-8", "replace"))
        case "console":
            yield PlainText(content, mime)


def picture(message: Message) -> ImageFile | None:
    """Read the image of a message. None if there is none, if it is only described, or if it cannot be read."""
    content, form = str(message.get("content", "")), message.get("format", "")
    if message.get("type") != "image":
        return None
    try:
        if form == "path":
            return ImageFile(mimetypes.guess_type(content)[0] or "image/png", read_bytes(content))
        data = base64.b64decode(content, validate=True)
    except (OSError, ValueError):
        return None
    return ImageFile(IMAGE_FORMATS[form], data) if form in IMAGE_FORMATS else None


def _shortened(printed: PlainText, richer: Output) -> list[Output]:
    """Drop the text form of the display that follows from what was printed."""
    lines = printed.text.rstrip("\n").split("\n")
    if _OBJECT.fullmatch(lines[-1].strip()):
        lines = lines[:-1]
    elif isinstance(richer, Page):
        # The last lines go if they contain exactly the text of the table.
        table_tokens = _SHAPE.sub("", unescape(re.sub(r"<[^>]*>", " ", _STYLE.sub(" ", richer.html)))).split()
        kept, last_tokens = list(lines), list[str]()
        while kept and len(last_tokens) < len(table_tokens):
            last_tokens = _SHAPE.sub("", kept.pop()).split() + last_tokens
        lines = kept if table_tokens and last_tokens == table_tokens else lines
    rest = "\n".join(lines)
    return [PlainText(rest + "\n")] if rest.strip() else []


# -- Markdown ----------------------------------------------------------------------------------------------------------

_DECIDED = {"declined": "You said no to this block", "denied": "This block was not allowed to run"}
_ENDED = {
    "interrupted": "This block was interrupted",
    "timed_out": "This block took too long and was stopped",
    "died": "This block crashed its session",
    "background": "This block continued in the background",
}
_EXTENSIONS = {"image/jpeg": ".jpg", "image/svg+xml": ".svg", "image/gif": ".gif", "image/webp": ".webp"}


def markdown(conversation: ExportedConversation) -> Document:
    """Write the conversation as Markdown; its pictures go to the folder beside it."""
    folder = pictures_folder(conversation.path).name
    writing = _MarkdownWriter(folder)
    writing.add(f"# {conversation.title}")
    for entry in conversation.entries:
        match entry:
            case Said(role="user"):
                writing.add(quoted(entry.text))
            case Said():
                writing.add(entry.text)
            case Shown(message=message):
                if (image := picture(message)) is not None:
                    writing.add_picture(image)
                else:
                    writing.add(quoted(str(message.get("content", ""))))
            case RecordedBlock():
                writing.add(fenced(entry.code, conversation.registry.canonical(entry.language)))
                if entry.ran:
                    writing.add_outputs(entry)
                if reason := why_not(entry):
                    writing.add(f"*{reason}.*")
            case RecordedToolCall():
                writing.add(fenced(str(entry), ""))
                writing.add_outputs(entry)
    notes = [f"Its images are in {folder}/."] if writing.pictures else []
    return Document("\n\n".join(writing.parts) + "\n", writing.pictures, notes)


class _MarkdownWriter:
    """Collects the parts of the text, and the pictures that they refer to by name in one folder."""

    def __init__(self, folder: str) -> None:
        self.parts: list[str] = []
        self.pictures: dict[str, bytes] = {}
        self._folder = folder

    def add(self, part: str) -> None:
        if part.strip():
            self.parts.append(part.strip("\n"))

    def add_picture(self, image: ImageFile) -> None:
        number = len(self.pictures) + 1
        name = f"figure-{number}{_EXTENSIONS.get(image.mime, '.png')}"
        self.pictures[name] = image.content
        self.add(f"![Figure {number}]({quote(self._folder)}/{name})")

    def add_outputs(self, of: RecordedBlock | RecordedToolCall) -> None:
        outputs = outputs_of(of.outputs, richest=False)
        printed = any(isinstance(output, PlainText) for output in outputs)
        for output in outputs:
            match output:
                case ImageFile():
                    self.add_picture(output)
                case Page(html=html) if not printed:
                    self.add(fenced(html, "html"))
                case PlainText(text=text, mime="text/markdown" | "text/latex"):
                    self.add(text)
                case PlainText(text=text) if text.strip():
                    self.add(fenced(text, "text"))


def why_not(block: RecordedBlock) -> str:
    """Say why the block did not run to its end; empty if it did."""
    if not block.ran:
        return _DECIDED.get(block.decision, "This block was not run")
    if block.ended in _ENDED:
        return _ENDED[block.ended]
    return "" if block.succeeded else "This block failed"


def fenced(text: str, language: str) -> str:
    """Fence a text with more backticks than any run inside it."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines())


# -- HTML --------------------------------------------------------------------------------------------------------------

_POLICY = "default-src 'none'; img-src data:; font-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
_LIGHT, _DARK = "friendly", "github-dark"
_ROW_HEIGHT, _MIN_HEIGHT, _MAX_HEIGHT = 30, 140, 640


def page(conversation: ExportedConversation) -> Document:
    writer, title = _PageWriter(conversation.registry), escape(conversation.title)
    body = "\n".join(writer.entry(entry) for entry in conversation.entries)
    return Document(
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>\n{_template('page.css')}{writer.style}</style>\n</head>\n"
        f"<body>\n<h1>{title}</h1>\n{body}\n</body>\n</html>\n"
    )


class Renderer:
    """Renders Markdown and code as HTML: raw HTML is escaped, remote pictures become links, code gets classes."""

    def __init__(self, registry: Registry) -> None:
        from markdown_it import MarkdownIt
        from pygments.formatters import HtmlFormatter

        self._registry = registry
        options = {"html": False, "highlight": self._fence}
        self._markdown: Any = MarkdownIt("commonmark", options).enable("table").enable("strikethrough")
        self._markdown.add_render_rule("image", _image)
        self._markdown.core.ruler.push("alignment", _align_by_class)
        self._formatter = HtmlFormatter(nowrap=True)

    def markdown(self, text: str) -> str:
        return str(self._markdown.render(text))

    def code(self, code: str, language: str) -> str:
        from pygments import highlight
        from pygments.lexers import get_lexer_by_name
        from pygments.util import ClassNotFound

        described = self._registry.describe(language)
        try:
            lexer = get_lexer_by_name(described.lexer or described.name.lower() or "text", stripnl=False)
            return str(highlight(code, lexer, self._formatter)).rstrip("\n")
        except ClassNotFound:
            return escape(code)

    def _fence(self, code: str, language: str, attributes: str) -> str:
        return f'<pre class="code"><code>{self.code(code, language)}</code></pre>'


class _PageWriter:
    def __init__(self, registry: Registry) -> None:
        from pygments.formatters import HtmlFormatter

        self._registry, self._renderer = registry, Renderer(registry)
        light, dark = (
            HtmlFormatter(style=name).get_style_defs(".code")  # type: ignore[no-untyped-call]
            for name in (_LIGHT, _DARK)
        )
        plain = ".code { background: none; }"
        self.style = f"{light}\n{plain}\n@media (prefers-color-scheme: dark) {{\n{dark}\n{plain}\n}}\n"
        self._figures = 0

    def entry(self, entry: Entry) -> str:
        match entry:
            case Said(role="user"):
                return f'<section class="you">{escape(entry.text)}</section>'
            case Said():
                return f'<section class="prose">{self._renderer.markdown(entry.text)}</section>'
            case Shown(message=message):
                if (image := picture(message)) is not None:
                    return self._figure(image)
                return f'<section class="you">{escape(str(message.get("content", "")))}</section>'
            case RecordedBlock():
                reason_tag = f'<span class="bad">{escape(reason)}</span>' if (reason := why_not(entry)) else ""
                language = self._registry.describe(entry.language)
                code = self._renderer.code(entry.code, entry.language)
                return (
                    f'<section class="block"><header><span>{escape(language.name.lower())}</span>{reason_tag}</header>'
                    f'<pre class="code"><code>{code}</code></pre>'
                    f"{self._outputs(entry) if entry.ran else ''}</section>"
                )
            case RecordedToolCall():
                code = f'<pre class="code"><code>{escape(str(entry))}</code></pre>'
                return f'<section class="block">{code}{self._outputs(entry)}</section>'

    def _outputs(self, of: RecordedBlock | RecordedToolCall) -> str:
        return "".join(f'<div class="out">{self._output(output)}</div>' for output in outputs_of(of.outputs))

    def _output(self, output: Output) -> str:
        match output:
            case ImageFile():
                return self._figure(output)
            case Page(html=html):
                return _frame(html)
            case PlainText(text=text, mime="text/markdown"):
                return f'<div class="prose">{self._renderer.markdown(text)}</div>'
            case PlainText(text=text):
                return f"<pre>{escape(text.rstrip())}</pre>"

    def _figure(self, image: ImageFile) -> str:
        self._figures += 1
        source = f"data:{image.mime};base64,{base64.b64encode(image.content).decode()}"
        return f'<figure><img src="{escape(source)}" alt="Figure {self._figures}"></figure>'


def _frame(html: str) -> str:
    """Embed HTML in a sandboxed frame: it may run its own scripts, but cannot reach the page or the network."""
    rows = len(re.findall(r"<tr\b", html, re.IGNORECASE))
    lively = re.search(r"<(?:script|svg|canvas|img|iframe)\b", html, re.IGNORECASE)
    height = _MAX_HEIGHT if lively else min(max(rows * _ROW_HEIGHT + 40, _MIN_HEIGHT), _MAX_HEIGHT)
    inside = f"<!doctype html><style>{_template('frame.css')}</style>{html}"
    return f'<iframe sandbox="allow-scripts" style="height: {height}px" srcdoc="{escape(inside)}"></iframe>'


def _image(self: Any, tokens: Sequence[Any], index: int, options: Any, env: Any) -> str:
    token = tokens[index]
    source, alternative = str(token.attrGet("src") or ""), escape(token.content or "image")
    if source.startswith("data:image/"):
        return f'<img src="{escape(source)}" alt="{alternative}">'
    return f'<a href="{escape(source)}">{alternative}</a>'


def _align_by_class(state: Any) -> None:
    """Turn column alignment into a class, because a page with a strict content policy can't have inline styles."""
    for token in state.tokens:
        if token.type in ("th_open", "td_open") and (style := token.attrs.pop("style", "")):
            token.attrSet("class", str(style).rpartition(":")[2])


def _template(name: str) -> str:
    return (Path(__file__).parent / "templates" / name).read_text(encoding="utf-8")
