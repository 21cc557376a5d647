"""Files as text: found, told from what is no text, and in the encoding and with the line ends that they have."""

from __future__ import annotations

import codecs
import difflib
import os

LARGEST = 64 * 1024 * 1024
# The longer marks first: that of UTF-32 begins as that of UTF-16 does.
MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
NAMES = {"cp1252": "Windows-1252", "latin-1": "Latin-1"}


class Text:
    """The text of a file, and how to write it back as it was written."""

    def __init__(self, data: bytes, name: str) -> None:
        self.mark, self.encoding = encoding_of(data, name)
        self.content = data[len(self.mark) :].decode(self.encoding, "surrogatepass")

    def encoded(self, content: str, name: str) -> bytes:
        try:
            return self.mark + content.encode(self.encoding, "surrogatepass")
        except UnicodeEncodeError as error:
            odd, kind = content[error.start], NAMES.get(self.encoding, self.encoding)
            raise ValueError(f"{name} is written in {kind}, which has no {odd!r}. Convert the file first.") from None


def encoding_of(data: bytes, name: str = "The file") -> tuple[bytes, str]:
    """The mark at the beginning and the encoding; ValueError if it is no text."""
    for mark, encoding in MARKS:
        if data.startswith(mark):
            return mark, encoding
    if b"\0" in data:
        raise ValueError(f"{name} is not text ({kind_of(data)}, {len(data):,} bytes). Open it with a library for it.")
    for encoding in ("utf-8", "cp1252"):
        try:
            data.decode(encoding)
        except UnicodeDecodeError:
            continue
        return b"", encoding
    return b"", "latin-1"  # has a character for every byte


def kind_of(data: bytes) -> str:
    """What a file seems to be, by how it begins."""
    for begin, kind in (
        (b"\x89PNG", "a PNG picture"), (b"\xff\xd8\xff", "a JPEG picture"), (b"GIF8", "a GIF picture"),
        (b"%PDF", "a PDF"), (b"PK\x03\x04", "a ZIP archive or an Office document"), (b"\x1f\x8b", "gzip data"),
        (b"SQLite format 3", "an SQLite database"), (b"\x7fELF", "a program"),
    ):  # fmt: skip
        if data.startswith(begin):
            return kind
    return "binary data"


def full(folder: str, path: str) -> str:
    """A path from where the session is."""
    return os.path.normpath(os.path.join(folder, os.path.expanduser(path)))


def content_of(folder: str, path: str) -> bytes:
    """What a file holds; errors that say what is there instead."""
    place = full(folder, path)
    if os.path.isdir(place):
        raise IsADirectoryError(f"{path} is a folder. To look into it: computer.files.search('*', {path!r})")
    if not os.path.exists(place):
        raise FileNotFoundError(f"There is no file {path!r} in {folder}.{_meant(place)}")
    if not os.path.isfile(place):
        raise ValueError(f"{path} is not a file that can be read as a whole.")
    if os.path.getsize(place) > LARGEST:
        size = os.path.getsize(place)
        raise ValueError(f"{path} has {size:,} bytes, and {LARGEST:,} is the most. Read it with code, in parts.")
    try:
        with open(place, "rb") as file:
            return file.read()
    except OSError as error:
        raise PermissionError(f"{path} cannot be read: {error.strerror}.") from None


def _meant(place: str) -> str:
    try:
        beside = os.listdir(os.path.dirname(place))
    except OSError:
        return ""
    close = difflib.get_close_matches(os.path.basename(place), beside, 3)
    return f" Did you mean one of these? {', '.join(close)}" if close else ""
