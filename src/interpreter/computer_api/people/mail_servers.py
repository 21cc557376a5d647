"""Mail through the user's own IMAP and SMTP servers, always over TLS."""

from __future__ import annotations

import base64
import imaplib
import re
import smtplib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email.message import EmailMessage
from email.utils import parseaddr
from typing import Any, NamedTuple

from interpreter.computer_api.people.account import Account, reaching
from interpreter.computer_api.people.errors import (
    AccountError,
    LoginRefusedError,
    ServerRefusedError,
    ServerUnreachableError,
)
from interpreter.computer_api.people.letters import letter

KEYS = {"imap": str, "smtp": str, "from": str}
PORTS = {("imap", True): 143, ("imap", False): 993, ("smtp", True): 587, ("smtp", False): 465}
MOST_BYTES = 1024 * 1024  # of one mail that are fetched; what is longer is mostly attachments
WINDOW = 20_000  # mails that one search looks at: the answer is one line, and lines have a limit


class Server(NamedTuple):
    """Where a server is, and whether the connection is encrypted from its first byte or from STARTTLS on."""

    host: str
    port: int
    starts_plain: bool

    def __str__(self) -> str:
        return f"The mail server {self.host}:{self.port}"


def server(account: Account, key: str) -> Server:
    """What `host` or `host:port` stands for: IMAP over TLS on 993, SMTP with STARTTLS on 587.

    `imaps://` and `smtps://` in front mean TLS from the first byte on any port, `imap://` and `smtp://` STARTTLS.
    """
    said = re.fullmatch(rf"(?:({key}s?)://)?(\[[^\]]+\]|[^:/\[\]@]+)(?::(\d+))?", account.get(key))
    if said is None:
        raise AccountError(f'"{key}" in {account.setting} takes a host or host:port, not {account.get(key)!r:.80}.')
    scheme, host, port = said.groups()
    starts_plain = scheme == key if scheme else (port == "143" if key == "imap" else port != "465")
    account.allow(host)
    return Server(host.strip("[]"), int(port or PORTS[key, starts_plain]), starts_plain)


# -- reading -------------------------------------------------------------------------------------------------------


def newest(account: Account, number: int, unread: bool, search: str | None) -> list[dict[str, Any]]:
    """The newest mails of the inbox, newest first; nothing is marked as read."""
    with inbox(account) as (imap, count):
        wanted = [*numbers(imap, count, number, unread, search)]
        return [mail for each in wanted if (mail := fetched(imap, each)) is not None]


def unread_count(account: Account) -> int:
    with connected(account) as imap:
        answer = done(imap.status("INBOX", "(UNSEEN)"), "count the unread mails")
        found = re.search(rb"UNSEEN (\d+)", answer)
        return int(found[1]) if found else 0


def numbers(imap: imaplib.IMAP4, count: int, number: int, unread: bool, search: str | None) -> Iterator[int]:
    """The numbers of the newest mails that fit; the highest is the newest."""
    if not unread and not search:
        yield from range(count, max(0, count - number), -1)
        return
    for top in range(count, 0, -WINDOW):
        terms = [f"{max(1, top - WINDOW + 1)}:{top}", *(["UNSEEN"] if unread else [])]
        if search:
            imap.literal = search.encode("utf-8")  # type: ignore[assignment]  # the last term, sent by its length
            terms.append("TEXT")
        found = [int(each) for each in done(imap.search("UTF-8" if search else None, *terms), "search").split()]
        yield from sorted(found, reverse=True)[:number]
        number -= len(found)
        if number <= 0:
            return


def fetched(imap: imaplib.IMAP4, number: int) -> dict[str, Any] | None:
    """One mail, or None if it has gone meanwhile."""
    status, parts = imap.fetch(str(number), f"(UID FLAGS RFC822.SIZE BODY.PEEK[]<0.{MOST_BYTES}>)")
    texts = [part[1] for part in parts if isinstance(part, tuple)]
    if status != "OK" or not texts:
        return None
    # Flags may stand before the text or behind it.
    about = b" ".join(part[0] if isinstance(part, tuple) else part or b"" for part in parts)
    uid, size = (re.search(word + rb" (\d+)", about) for word in (rb"UID", rb"RFC822.SIZE"))
    flags = re.search(rb"FLAGS \(([^)]*)\)", about)
    return {
        "id": int(uid[1]) if uid else None,
        **letter(texts[0]),
        "unread": flags is not None and rb"\Seen" not in flags[1].split(),
        "truncated": size is not None and int(size[1]) > len(texts[0]),
    }


@contextmanager
def inbox(account: Account) -> Iterator[tuple[imaplib.IMAP4, int]]:
    """The inbox, opened for reading, and how many mails it has."""
    with connected(account) as imap:
        yield imap, int(done(imap.select("INBOX", readonly=True), "open the inbox") or 0)


@contextmanager
def connected(account: Account) -> Iterator[imaplib.IMAP4]:
    where = server(account, "imap")
    user, password = account.get("user"), account.password()
    with reaching(str(where), account.timeout), lost_is_told(where):
        imap = open_imap(account, where)
        try:
            log_in(imap, where, user, password)
            yield imap
        finally:
            with suppress(imaplib.IMAP4.error, OSError):
                imap.logout()


def open_imap(account: Account, where: Server) -> imaplib.IMAP4:
    if not where.starts_plain:
        return imaplib.IMAP4_SSL(where.host, where.port, ssl_context=account.tls(), timeout=account.timeout)
    imap = imaplib.IMAP4(where.host, where.port, timeout=account.timeout)
    try:
        imap.starttls(account.tls())
    except BaseException:
        with suppress(OSError):  # it may be closed by now
            imap.shutdown()
        raise
    return imap


def log_in(imap: imaplib.IMAP4, where: Server, user: str, password: str) -> None:
    try:
        if "AUTH=PLAIN" in imap.capabilities:  # which takes any character; LOGIN knows only ASCII
            imap.authenticate("PLAIN", lambda _: f"\0{user}\0{password}".encode())
        else:
            imap.login(user, password)
    except imaplib.IMAP4.abort:
        raise
    except imaplib.IMAP4.error as error:
        raise refused_login(where, user, str(error)) from None
    except UnicodeEncodeError:
        raise refused_login(where, user, "it takes only plain letters, digits and signs.") from None


@contextmanager
def lost_is_told(where: Server) -> Iterator[None]:
    try:
        yield
    except imaplib.IMAP4.abort as error:
        raise ServerUnreachableError(f"{where} ended the connection: {error}. Try again.") from None
    except imaplib.IMAP4.error as error:
        raise ServerRefusedError(f"{where} refuses: {error}.") from None


def done(answer: tuple[str, list[Any]], what: str) -> bytes:
    status, data = answer
    told = b" ".join(part for part in data if isinstance(part, bytes))
    if status != "OK":
        raise ServerRefusedError(f"The mail server does not {what}: {told.decode('utf-8', 'replace')}")
    return told


def refused_login(where: Server, user: str, said: str) -> LoginRefusedError:
    return LoginRefusedError(
        f"{where} does not let {user} in: {said} Check the name and the password; many providers want a password made "
        "for this program (an app password) instead of your own."
    )


# -- sending -------------------------------------------------------------------------------------------------------


def post(account: Account, message: EmailMessage, to: list[str]) -> dict[str, str]:
    """Send a mail; whom the server did not take, and why."""
    where = server(account, "smtp")
    user, password = account.get("user"), account.password()
    sender = parseaddr(str(message["From"]))[1]
    with reaching(str(where), account.timeout), refusals_are_told(where, user), open_smtp(account, where) as smtp:
        authenticate(smtp, user, password)
        # `send_message` would put a > before lines that begin with From.
        refused = smtp.sendmail(sender, to, message.as_bytes())
    return {address: said(code, words) for address, (code, words) in refused.items()}


def open_smtp(account: Account, where: Server) -> smtplib.SMTP:
    if not where.starts_plain:
        return smtplib.SMTP_SSL(where.host, where.port, timeout=account.timeout, context=account.tls())
    smtp = smtplib.SMTP(where.host, where.port, timeout=account.timeout)
    try:
        smtp.starttls(context=account.tls())
    except BaseException:
        smtp.close()
        raise
    return smtp


def authenticate(smtp: smtplib.SMTP, user: str, password: str) -> None:
    smtp.ehlo_or_helo_if_needed()
    if "PLAIN" not in smtp.esmtp_features.get("auth", "").upper().split():
        try:
            smtp.login(user, password)
        except UnicodeEncodeError:
            raise smtplib.SMTPAuthenticationError(535, b"it takes only plain letters, digits and signs.") from None
        return
    # As `login` does it, but with any character.
    given = base64.b64encode(f"\0{user}\0{password}".encode()).decode("ascii")
    code, words = smtp.docmd("AUTH", f"PLAIN {given}")
    if code not in (235, 503):
        raise smtplib.SMTPAuthenticationError(code, words)


@contextmanager
def refusals_are_told(where: Server, user: str) -> Iterator[None]:
    try:
        yield
    except smtplib.SMTPAuthenticationError as error:
        raise refused_login(where, user, said(error.smtp_code, error.smtp_error)) from None
    except smtplib.SMTPRecipientsRefused as error:
        each = "; ".join(f"{address}: {said(*why)}" for address, why in error.recipients.items())
        raise ServerRefusedError(f"{where} takes nobody of those it should go to; nothing was sent. {each}") from None
    except smtplib.SMTPResponseException as error:
        words = said(error.smtp_code, error.smtp_error)
        raise ServerRefusedError(f"{where} does not take the mail; nothing was sent: {words}") from None
    except smtplib.SMTPNotSupportedError as error:
        raise ServerRefusedError(f"{where} cannot do what is needed; nothing was sent: {error}") from None
    except smtplib.SMTPServerDisconnected as error:
        if isinstance(error.__context__, TimeoutError):
            raise error.__context__ from None
        raise ServerUnreachableError(f"{where} ended the connection: {error}. It may or may not be sent.") from None


def said(code: int, words: bytes | str) -> str:
    return f"{code} {words.decode('utf-8', 'replace') if isinstance(words, bytes) else words}"
