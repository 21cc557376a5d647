"""A small client of CalDAV and CardDAV: what there is, what it holds, one more, one less."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urljoin, urlsplit
from xml.etree import ElementTree

from interpreter.computer_api.people.account import NO_PASSWORD, Account, is_loopback, reaching
from interpreter.computer_api.people.collection import CHANGED, Item
from interpreter.computer_api.people.errors import AccountError, LoginRefusedError, NotFoundError, ServerRefusedError
from interpreter.errors import ComputerError

if TYPE_CHECKING:
    import httpx

    Element = ElementTree.Element

DAV = "{DAV:}"
REDIRECTIONS = 5
PROVIDERS = ("icloud.com",)  # domains of one provider, with several servers for one account
MOST_BYTES = 64 * 1024 * 1024


class Kind(NamedTuple):
    """What CalDAV and CardDAV call the same things."""

    namespace: str
    home: str
    collection: str
    data: str
    known: str
    suffix: str
    media: str

    def tag(self, name: str) -> str:
        return f"{{{self.namespace}}}{name}"


CALENDARS = Kind(
    *("urn:ietf:params:xml:ns:caldav", "calendar-home-set", "calendar", "calendar-data"),
    *("/.well-known/caldav", ".ics", "text/calendar"),
)
ADDRESS_BOOKS = Kind(
    *("urn:ietf:params:xml:ns:carddav", "addressbook-home-set", "addressbook", "address-data"),
    *("/.well-known/carddav", ".vcf", "text/vcard"),
)


class Answer(NamedTuple):
    """One resource of a server's answer."""

    url: str
    properties: dict[str, Element]

    def links(self, tag: str) -> list[str]:
        found = self.properties.get(tag)
        hrefs = found.findall(f"{DAV}href") if found is not None else []
        return [urljoin(self.url, (href.text or "").strip()) for href in hrefs if href.text]

    def text(self, tag: str) -> str:
        found = self.properties.get(tag)
        return (found.text or "").strip() if found is not None else ""


class Dav:
    """One account on a server."""

    def __init__(self, account: Account, kind: Kind, client: httpx.Client) -> None:
        self.account, self.kind, self._client = account, kind, client

    def collections(self) -> list[Remote]:
        """The calendars or address books of the user."""
        url = self.account.get("url")
        here = self._about(url)
        if here is not None and self._is_one(here):
            return [Remote(self, here)]
        homes = self._homes(here)
        if not homes and urlsplit(url).path in ("", "/"):
            homes = self._homes(self._about(urljoin(url, self.kind.known)))
        found = [answer for home in homes or [url] for answer in self._look(home, depth=1)]
        if ones := [Remote(self, answer) for answer in found if self._is_one(answer)]:
            return ones
        raise NotFoundError(f'There is no {self.kind.collection} at {url}: is "url" in {self.account.setting} right?')

    def _homes(self, answer: Answer | None) -> list[str]:
        if answer is None:
            return []
        if homes := answer.links(self.kind.tag(self.kind.home)):
            return homes
        principals = answer.links(f"{DAV}current-user-principal")
        inner = [self._about(each) for each in principals if each != answer.url]
        return [home for each in inner if each is not None for home in each.links(self.kind.tag(self.kind.home))]

    def _is_one(self, answer: Answer) -> bool:
        kinds = answer.properties.get(f"{DAV}resourcetype")
        if kinds is None or kinds.find(self.kind.tag(self.kind.collection)) is None:
            return False
        components = answer.properties.get(self.kind.tag("supported-calendar-component-set"))
        return components is None or any(each.get("name", "").upper() == "VEVENT" for each in components)

    def _about(self, url: str) -> Answer | None:
        return next(iter(self._look(url, depth=0)), None)

    def _look(self, url: str, depth: int) -> list[Answer]:
        own = f"<K:{self.kind.home}/><K:supported-calendar-component-set/>"
        body = f"<D:prop><D:resourcetype/><D:displayname/><D:current-user-principal/>{own}</D:prop>"
        missing = (404, 405) if depth == 0 else ()
        return self.ask("PROPFIND", url, self._xml("D:propfind", body), depth, missing)

    def _xml(self, name: str, body: str) -> str:
        spaces = f'xmlns:D="DAV:" xmlns:K="{self.kind.namespace}"'
        return f'<?xml version="1.0" encoding="utf-8"?><{name} {spaces}>{body}</{name}>'

    def query(self, url: str, start: datetime | None, end: datetime | None) -> list[Answer]:
        """What a collection holds; of a calendar, what happens between two times."""
        wanted = f"<D:prop><D:getetag/><K:{self.kind.data}/></D:prop>"
        if self.kind is ADDRESS_BOOKS:
            return self.ask("REPORT", url, self._xml("K:addressbook-query", wanted), 1)
        given = [(name, when) for name, when in (("start", start), ("end", end)) if when is not None]
        times = "".join(f' {name}="{when.astimezone(UTC):%Y%m%dT%H%M%SZ}"' for name, when in given)
        inner = f'<K:comp-filter name="VEVENT"><K:time-range{times}/></K:comp-filter>'
        filters = f'<K:filter><K:comp-filter name="VCALENDAR">{inner}</K:comp-filter></K:filter>'
        return self.ask("REPORT", url, self._xml("K:calendar-query", wanted + filters), 1)

    def ask(self, method: str, url: str, xml: str, depth: int, missing: tuple[int, ...] = ()) -> list[Answer]:
        """The resources of a server's answer; none if it says one of `missing`."""
        headers = {"Depth": str(depth), "Content-Type": "application/xml; charset=utf-8"}
        answer = self.send(method, url, xml, headers, (207, *missing))
        return answers(str(answer.url), answer.content) if answer.status_code == 207 else []

    def send(self, method: str, url: str, text: str, headers: dict[str, str], good: tuple[int, ...]) -> httpx.Response:
        for _ in range(REDIRECTIONS):
            checked(self.account, url)
            answer = self._sent(method, url, text, headers)
            if answer.is_redirect:
                url = urljoin(url, answer.headers.get("location", ""))
            elif answer.status_code in good:
                return answer
            else:
                raise self._refusal(answer)
        raise ServerRefusedError(f"The server sends us round in a circle, at last to {url}.")

    def _sent(self, method: str, url: str, text: str, headers: dict[str, str]) -> httpx.Response:
        import httpx

        where = f"The server {urlsplit(url).netloc}"
        with reaching(where, self.account.timeout):
            try:
                answer = self._client.request(method, url, content=text.encode("utf-8"), headers=headers)
            except httpx.TimeoutException:
                raise TimeoutError from None
            except httpx.HTTPError as error:
                raise (cause_of(error) or OSError(str(error))) from None
        if len(answer.content) > MOST_BYTES:
            raise ServerRefusedError(f"{where} sent more than {MOST_BYTES >> 20} MB.")
        return answer

    def _refusal(self, answer: httpx.Response) -> ComputerError:
        where = f"The server {answer.url.host}"
        match answer.status_code:
            case 401:
                user = self.account.values.get("user", "nobody")
                return LoginRefusedError(f"{where} does not let {user} in. Check the name and the password.")
            case 404:
                return NotFoundError(f"{where} has nothing at {answer.url.path}.")
            case 412:
                return ComputerError(CHANGED.format(answer.url.path))
            case status:
                return ServerRefusedError(f"{where} refuses: {status} {answer.reason_phrase} for {answer.url.path}.")


class Remote:
    """A calendar or an address book on a server."""

    def __init__(self, dav: Dav, answer: Answer) -> None:
        self._dav = dav
        self.url = answer.url if answer.url.endswith("/") else f"{answer.url}/"
        self.name = answer.text(f"{DAV}displayname") or self.url.rstrip("/").rpartition("/")[2]

    def items(self, start: datetime | None = None, end: datetime | None = None) -> list[Item]:
        tag = self._dav.kind.tag(self._dav.kind.data)
        found = self._dav.query(self.url, start, end)
        return [Item(each.url, each.text(tag), each.text(f"{DAV}getetag")) for each in found if each.text(tag)]

    def add(self, uid: str, extended: Callable[[str | None], str]) -> None:
        url = urljoin(self.url, quote(f"{uid}{self._dav.kind.suffix}"))
        self._put(url, extended(None), {"If-None-Match": "*"})

    def replace(self, item: Item, text: str) -> None:
        self._put(item.place, text, {"If-Match": item.tag} if item.tag else {})

    def remove(self, item: Item) -> None:
        self._dav.send("DELETE", item.place, "", {"If-Match": item.tag} if item.tag else {}, (200, 202, 204))

    def _put(self, url: str, text: str, headers: dict[str, str]) -> None:
        media = {"Content-Type": f"{self._dav.kind.media}; charset=utf-8"}
        self._dav.send("PUT", url, text, {**headers, **media}, (200, 201, 204))


@contextmanager
def remote_collections(account: Account, kind: Kind) -> Iterator[list[Remote]]:
    """The user's calendars or address books, as long as they are looked at."""
    import httpx

    url = account.get("url")
    checked(account, url)
    auth = httpx.BasicAuth(account.get("user"), account.password()) if account.values.get("user") else None
    near = is_loopback(urlsplit(url).hostname or "")
    with httpx.Client(auth=auth, verify=account.tls(), timeout=account.timeout, trust_env=not near) as client:
        yield Dav(account, kind, client).collections()


def checked(account: Account, url: str) -> None:
    """Whether a password may go there: over TLS, or to this machine, and no further than the account's own server."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if "@" in parts.netloc:
        raise AccountError(NO_PASSWORD.format(setting=account.setting))
    if not host or parts.scheme not in ("https", "http"):
        raise AccountError(f'"url" in {account.setting} takes an https address, not {url!r:.80}.')
    if parts.scheme == "http" and not is_loopback(host):
        raise AccountError(f"{host} is only asked over https: a password would be readable on the way.")
    own = urlsplit(account.get("url")).hostname or ""
    if not is_related(host, own):
        raise ServerRefusedError(
            f"{own} leads to {host}, and your password is not sent there. If that is your server, set it as the url."
        )
    account.allow(host)


def is_related(host: str, own: str) -> bool:
    """Whether it is the same server, or one whose name is below its own, or another of the same provider.

    Who else has a name beside it cannot be told from the name: of co.uk or github.io that may be anybody.
    """
    if host == own or host == own.removeprefix("www."):
        return True
    if is_loopback(own) or "." not in own or own.replace(".", "").isdigit():
        return False
    return any(host.endswith(f".{domain}") for domain in (own, *_providers(own)))


def _providers(own: str) -> list[str]:
    return [domain for domain in PROVIDERS if own == domain or own.endswith(f".{domain}")]


def answers(url: str, xml: bytes) -> list[Answer]:
    try:
        root = ElementTree.fromstring(xml)
    except ElementTree.ParseError as error:
        raise ServerRefusedError(f"The server's answer cannot be read: {error}. Is the address right?") from None
    found = []
    for response in root.iter(f"{DAV}response"):
        properties: dict[str, Element] = {}
        for state in response.iter(f"{DAV}propstat"):
            if " 200" in (state.findtext(f"{DAV}status") or " 200"):
                properties |= {each.tag: each for prop in state.iter(f"{DAV}prop") for each in prop}
        found.append(Answer(urljoin(url, (response.findtext(f"{DAV}href") or "").strip()), properties))
    return found


def cause_of(error: BaseException) -> OSError | None:
    """What of the system's errors is behind one of httpx's."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, OSError):
            return seen
        seen = seen.__cause__ or seen.__context__
    return None
