"""Mails: one to send, made of its parts; and one that came, as a dict."""

from __future__ import annotations

import email
import email.policy
import mimetypes
import re
from collections.abc import Iterable, Iterator, Sequence
from email.message import EmailMessage
from email.utils import format_datetime, formataddr, getaddresses, localtime, make_msgid, parsedate_to_datetime
from typing import Any

from interpreter.computer_api.people.html_text import text_of_html
from interpreter.computer_api.people.readable import Attachment

_ADDRESS = re.compile(r"[^@\s,;:<>()\"\\\x00-\x1f]+@[^@\s,;:<>()\"\\\x00-\x1f]+")


def recipients(to: str | Sequence[str]) -> list[tuple[str, str]]:
    """Names and addresses; ValueError for what is no address."""
    given = [to] if isinstance(to, str) else list(to)
    found = []
    for each in given:
        # A semicolon between addresses is what many people type.
        parsed = getaddresses([each.replace(";", ",")]) if "\n" not in each and "\r" not in each else []
        for name, address in parsed or [("", "")]:
            if not _ADDRESS.fullmatch(address):
                raise ValueError(
                    f"{each!r} is no mail address. For a person's name, ask computer.contacts.get_email_address(name)."
                )
            found.append((name, as_ascii(address)))
    if not found:
        raise ValueError("There is nobody to send to: `to` takes an address, or a list of them.")
    return found


def as_ascii(address: str) -> str:
    """An address as every server takes it."""
    local, _, domain = address.rpartition("@")
    try:
        local.encode("ascii")
        return f"{local}@{domain.encode('idna').decode('ascii')}"
    except UnicodeError:
        raise ValueError(f"{address!r} cannot be sent to: before the @ there may only be plain letters.") from None


def compose(
    sender: str, to: Iterable[tuple[str, str]], subject: str, body: str, attachments: Iterable[Attachment]
) -> EmailMessage:
    """A mail as it is sent."""
    if any(sign in subject for sign in "\r\n\0"):
        raise ValueError("The subject has to be one line.")
    message = EmailMessage(policy=email.policy.SMTP.clone(cte_type="7bit"))  # which every server takes
    message["From"] = formataddr(recipients(sender)[0])
    message["To"] = ", ".join(map(formataddr, to))
    message["Subject"] = subject
    message["Date"] = format_datetime(localtime())
    message["Message-ID"] = make_msgid(domain=recipients(sender)[0][1].rpartition("@")[2])
    message.set_content(body)
    for attachment in attachments:
        kind, encoding = mimetypes.guess_type(attachment.name)
        main, _, sub = (kind if kind and not encoding else "application/octet-stream").partition("/")
        if main in ("text", "message", "multipart"):  # its bytes go as they are, whatever their character set
            main, sub = "application", "octet-stream"
        message.add_attachment(attachment.content, maintype=main, subtype=sub, filename=attachment.name)
    return message


def letter(raw: bytes) -> dict[str, Any]:
    """What a mail says: from, to, subject, date, body and the names of what is attached."""
    message = email.message_from_bytes(raw, policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    return {
        "from": header(message, "From"),
        "to": header(message, "To"),
        "subject": header(message, "Subject"),
        "date": date_of(message),
        "body": body_of(message),
        "attachments": [name for part in parts(message) if (name := name_of(part)) is not None],
    }


def header(message: EmailMessage, name: str) -> str:
    """A header in readable form; one that breaks every rule is given as it stands."""
    try:
        return str(message[name] or "").strip()
    except (ValueError, LookupError, AttributeError, TypeError):  # the parser's own surprise at what people send
        raw = next((str(value) for key, value in message.raw_items() if key.lower() == name.lower()), "")
        return " ".join(raw.split())


def date_of(message: EmailMessage) -> str | None:
    raw = next((str(value) for key, value in message.raw_items() if key.lower() == "date"), "")
    try:
        return parsedate_to_datetime(raw).isoformat()
    except (ValueError, TypeError, OverflowError):
        return None


def body_of(message: EmailMessage) -> str:
    """The text of a mail; of one that has only HTML, what that shows."""
    texts = [part for part in parts(message) if part.get_content_maintype() == "text" and name_of(part) is None]
    for kind in ("text/plain", "text/html"):
        found = [decoded(part) for part in texts if part.get_content_type() == kind]
        if any(text.strip() for text in found):
            text = "\n".join(text.strip() for text in found)
            return text_of_html(text) if kind == "text/html" else text.replace("\r\n", "\n")
    return ""


def parts(message: Any) -> Iterator[Any]:
    """What a mail is made of; a mail that is attached to it is one part."""
    if message.get_content_maintype() == "multipart" and message.is_multipart():
        for part in message.get_payload():
            yield from parts(part)
    else:
        yield message


def decoded(part: Any) -> str:
    payload = part.get_payload(decode=True) or b""
    try:
        return str(payload.decode(part.get_content_charset() or "utf-8", "replace"))
    except LookupError:  # a character set that nobody knows
        return str(payload.decode("utf-8", "replace"))


def name_of(part: Any) -> str | None:
    """The name of an attachment; None if the part is none."""
    name = part.get_filename()
    is_attached = part.get_content_disposition() == "attachment" or part.get_content_type() == "message/rfc822"
    if name is None and not is_attached:
        return None
    return " ".join((name or "unnamed").split())
