"""Calendars and address books: collections on a CalDAV or CardDAV server, in a folder, or in one file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urljoin, urlsplit
from xml.etree import ElementTree

from interpreter.computer_api.accounts import (
    NO_PASSWORD,
    Account,
    AccountError,
    LoginRefusedError,
    NotFoundError,
    ServerRefusedError,
    is_loopback,
    reaching,
)
from interpreter.errors import ComputerError
from interpreter.host.files import confined, read_bytes

if TYPE_CHECKING:
    import httpx

DAV = "{DAV:}"
MAX_REDIRECTS = 5
PROVIDERS = ("icloud.com",)  # domains of one provider, with several servers for one account
MAX_BYTES = 64 * 1024 * 1024
CHANGED = "{} has been changed in the meantime, so nothing was done. Read it again, then retry."


class DavService(NamedTuple):
    """The names that CalDAV or CardDAV uses for the same things."""

    namespace: str
    home: str
    collection: str
    data: str
    well_known: str
    suffix: str
    media: str

    def tag(self, name: str) -> str:
        return f"{{{self.namespace}}}{name}"


CALENDARS = DavService(
    *("urn:ietf:params:xml:ns:caldav", "calendar-home-set", "calendar", "calendar-data"),
    *("/.well-known/caldav", ".ics", "text/calendar"),
)
ADDRESS_BOOKS = DavService(
    *("urn:ietf:params:xml:ns:carddav", "addressbook-home-set", "addressbook", "address-data"),
    *("/.well-known/carddav", ".vcf", "text/vcard"),
)


@dataclass(frozen=True)
class CollectionItem:
    """One text in a collection; `tag` is the server's name for this version of it."""

    location: str  # a path or a URL
    text: str
    tag: str = ""


@contextmanager
def collections(account: Account, kind: DavService) -> Iterator[Sequence[Collection]]:
    """Open the calendars or address books of an account, on its server or in its files."""
    if account.values.get("path"):
        yield local_collections(account, kind)
        return
    import httpx

    url = account.get("url")
    check_url(account, url)
    auth = httpx.BasicAuth(account.get("user"), account.password()) if account.values.get("user") else None
    near = is_loopback(urlsplit(url).hostname or "")
    with httpx.Client(auth=auth, verify=account.tls(), timeout=account.timeout, trust_env=not near) as client:
        yield DavServer(account, kind, client).collections()


# -- in files ------------------------------------------------------------------------------------------------------


class LocalCollection:
    """A folder with an event or a card in each file, or one file with all of them."""

    def __init__(self, path: Path, suffix: str) -> None:
        self.path, self.suffix = path, suffix
        self.name = path.name.removesuffix(suffix) if path.is_file() else path.name

    def items(self, start: datetime | None = None, end: datetime | None = None) -> list[CollectionItem]:
        files = [self.path] if self.path.is_file() else sorted(self.path.glob(f"*{self.suffix}"))
        return [CollectionItem(str(file), _read(file)) for file in files if file.is_file()]

    def add(self, uid: str, extend: Callable[[str | None], str]) -> None:
        """Add something new; `extend` makes the text from the text so far, or from None."""
        if self.path.is_file():
            (item,) = self.items()
            self.replace(item, extend(item.text or None))
        else:
            _write(self.path / f"{uid}{self.suffix}", extend(None))

    def replace(self, item: CollectionItem, text: str | None) -> None:
        """Replace the text of an item, or with None remove the item; an error if it has changed in the meantime."""
        file = Path(item.location)
        if _read(file) != item.text:
            raise ComputerError(CHANGED.format(item.location))
        if text is not None or self.path.is_file():
            _write(file, text or "")
        else:
            folder, above = confined(file.parent)
            with folder:
                folder.unlink(f"{above}/{file.name}")


def local_collections(account: Account, kind: DavService) -> list[LocalCollection]:
    """Return the file or folder that the account names; of a folder of folders, each."""
    path, suffix = account.path("path"), kind.suffix
    if path.is_file():
        return [LocalCollection(path, suffix)]
    if not path.is_dir():
        raise AccountError(f'"path" in {account.setting} is {path}, which does not exist.')
    inner = [folder for folder in sorted(path.iterdir()) if folder.is_dir() and not folder.name.startswith(".")]
    own = [path] if not inner or any(path.glob(f"*{suffix}")) else []
    return [LocalCollection(folder, suffix) for folder in (*own, *inner)]


def _read(file: Path) -> str:
    try:
        return read_bytes(file).decode("utf-8-sig")
    except (OSError, UnicodeError) as error:
        raise ComputerError(f"{file} cannot be read: {error}") from None


def _write(file: Path, text: str) -> None:
    """Write the whole file or nothing, with the permissions that it had."""
    try:
        folder, name = confined(file)
        with folder:
            folder.write_bytes(name, text.encode("utf-8"), None if folder.exists(name) else 0o600)
    except OSError as error:
        raise ComputerError(f"{file} cannot be written: {error.strerror}") from None


# -- on a server ---------------------------------------------------------------------------------------------------


class Resource(NamedTuple):
    url: str
    properties: dict[str, ElementTree.Element]

    def links(self, tag: str) -> list[str]:
        element = self.properties.get(tag)
        hrefs = element.findall(f"{DAV}href") if element is not None else []
        return [urljoin(self.url, href.text.strip()) for href in hrefs if href.text]

    def text(self, tag: str) -> str:
        element = self.properties.get(tag)
        return (element.text or "").strip() if element is not None else ""


class DavServer:
    """The connection to one account's server. We follow redirects ourselves, because each may ask for the password."""

    def __init__(self, account: Account, kind: DavService, client: httpx.Client) -> None:
        self.account, self.kind, self._client = account, kind, client

    def collections(self) -> list[RemoteCollection]:
        """Return the user's calendars or address books: at the address itself, or found from there."""
        url = self.account.get("url")
        here = self._properties(url, depth=0)
        if here and self._is_collection(here[0]):
            return [RemoteCollection(self, here[0])]
        homes = self._homes(here)
        if not homes and urlsplit(url).path in ("", "/"):
            homes = self._homes(self._properties(urljoin(url, self.kind.well_known), depth=0))
        resources = [each for home in homes or [url] for each in self._properties(home, depth=1)]
        if ones := [RemoteCollection(self, each) for each in resources if self._is_collection(each)]:
            return ones
        raise NotFoundError(f'There is no {self.kind.collection} at {url}. Check "url" in {self.account.setting}.')

    def _homes(self, resources: list[Resource]) -> list[str]:
        """Return where the user's collections are: from these resources, or from the user that they name."""
        tag = self.kind.tag(self.kind.home)
        if homes := [home for each in resources for home in each.links(tag)]:
            return homes
        users = [url for each in resources for url in each.links(f"{DAV}current-user-principal") if url != each.url]
        return [home for url in users for each in self._properties(url, depth=0) for home in each.links(tag)]

    def _is_collection(self, resource: Resource) -> bool:
        kinds = resource.properties.get(f"{DAV}resourcetype")
        if kinds is None or kinds.find(self.kind.tag(self.kind.collection)) is None:
            return False
        components = resource.properties.get(self.kind.tag("supported-calendar-component-set"))
        return components is None or any(each.get("name", "").upper() == "VEVENT" for each in components)

    def _properties(self, url: str, depth: int) -> list[Resource]:
        own = f"<K:{self.kind.home}/><K:supported-calendar-component-set/>"
        body = f"<D:prop><D:resourcetype/><D:displayname/><D:current-user-principal/>{own}</D:prop>"
        resources = self.ask("PROPFIND", url, "D:propfind", body, depth, missing=() if depth else (404, 405))
        return resources if depth else resources[:1]

    def ask(
        self, method: str, url: str, element: str, body: str, depth: int, missing: tuple[int, ...] = ()
    ) -> list[Resource]:
        """Return the resources of a server's answer; none if its status is one of `missing`."""
        spaces = f'xmlns:D="DAV:" xmlns:K="{self.kind.namespace}"'
        xml = f'<?xml version="1.0" encoding="utf-8"?><{element} {spaces}>{body}</{element}>'
        headers = {"Depth": str(depth), "Content-Type": "application/xml; charset=utf-8"}
        answer = self.send(method, url, xml, headers, (207, *missing))
        if answer.status_code != 207:
            return []
        try:
            root = ElementTree.fromstring(answer.content)
        except ElementTree.ParseError as error:
            raise ServerRefusedError(f"Can't read the server's answer: {error}. Check the URL.") from None
        resources = []
        for response in root.iter(f"{DAV}response"):
            properties: dict[str, ElementTree.Element] = {}
            for state in response.iter(f"{DAV}propstat"):
                if " 200" in (state.findtext(f"{DAV}status") or " 200"):
                    properties |= {each.tag: each for prop in state.iter(f"{DAV}prop") for each in prop}
            href = (response.findtext(f"{DAV}href") or "").strip()
            resources.append(Resource(urljoin(str(answer.url), href), properties))
        return resources

    def send(self, method: str, url: str, text: str, headers: dict[str, str], good: tuple[int, ...]) -> httpx.Response:
        """Return the answer to a request; raise an error unless its status is one of `good`."""
        import httpx

        for _ in range(MAX_REDIRECTS):
            check_url(self.account, url)
            with reaching(f"The server {urlsplit(url).netloc}", self.account.timeout):
                try:
                    answer = self._client.request(method, url, content=text.encode("utf-8"), headers=headers)
                except httpx.TimeoutException:
                    raise TimeoutError from None
                except httpx.HTTPError as error:
                    cause: BaseException | None = error
                    while cause is not None and not isinstance(cause, OSError):
                        cause = cause.__cause__ or cause.__context__
                    raise (cause or OSError(str(error))) from None
            if len(answer.content) > MAX_BYTES:
                raise ServerRefusedError(f"The server {urlsplit(url).netloc} sent more than {MAX_BYTES >> 20} MB.")
            if answer.is_redirect:
                url = urljoin(url, answer.headers.get("location", ""))
                continue
            if answer.status_code in good:
                return answer
            where, path = f"The server {answer.url.host}", answer.url.path
            match answer.status_code:
                case 401:
                    user = self.account.values.get("user", "(no user)")
                    raise LoginRefusedError(f"{where} rejected the login of {user}. Check the name and the password.")
                case 404:
                    raise NotFoundError(f"{where} has nothing at {path}.")
                case 412:
                    raise ComputerError(CHANGED.format(path))
                case status:
                    raise ServerRefusedError(f"{where} refused: {status} {answer.reason_phrase} for {path}.")
        raise ServerRefusedError(f"Too many redirects, the last one to {url}.")


class RemoteCollection:
    def __init__(self, server: DavServer, resource: Resource) -> None:
        self._server = server
        self.url = resource.url if resource.url.endswith("/") else f"{resource.url}/"
        self.name = resource.text(f"{DAV}displayname") or self.url.rstrip("/").rpartition("/")[2]

    def items(self, start: datetime | None = None, end: datetime | None = None) -> list[CollectionItem]:
        """Return the items of the collection; for a calendar, those between two times."""
        kind = self._server.kind
        query, filters = "addressbook-query", ""
        if kind is CALENDARS:
            given = [(name, when) for name, when in (("start", start), ("end", end)) if when is not None]
            times = "".join(f' {name}="{when.astimezone(UTC):%Y%m%dT%H%M%SZ}"' for name, when in given)
            inner = f'<K:comp-filter name="VEVENT"><K:time-range{times}/></K:comp-filter>'
            filters = f'<K:filter><K:comp-filter name="VCALENDAR">{inner}</K:comp-filter></K:filter>'
            query = "calendar-query"
        wanted = f"<D:prop><D:getetag/><K:{kind.data}/></D:prop>{filters}"
        resources = self._server.ask("REPORT", self.url, f"K:{query}", wanted, 1)
        tag = kind.tag(kind.data)
        return [
            CollectionItem(each.url, each.text(tag), each.text(f"{DAV}getetag")) for each in resources if each.text(tag)
        ]

    def add(self, uid: str, extend: Callable[[str | None], str]) -> None:
        url = urljoin(self.url, quote(f"{uid}{self._server.kind.suffix}"))
        self._put(url, extend(None), {"If-None-Match": "*"})

    def replace(self, item: CollectionItem, text: str | None) -> None:
        unchanged = {"If-Match": item.tag} if item.tag else {}
        if text is None:
            self._server.send("DELETE", item.location, "", unchanged, (200, 202, 204))
        else:
            self._put(item.location, text, unchanged)

    def _put(self, url: str, text: str, headers: dict[str, str]) -> None:
        media = {"Content-Type": f"{self._server.kind.media}; charset=utf-8"}
        self._server.send("PUT", url, text, {**headers, **media}, (200, 201, 204))


Collection = LocalCollection | RemoteCollection


def check_url(account: Account, url: str) -> None:
    """Reject a URL the password must not be sent to: one on an unrelated server, or a non-local one without TLS."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if "@" in parts.netloc:
        raise AccountError(NO_PASSWORD.format(setting=account.setting))
    if not host or parts.scheme not in ("https", "http"):
        raise AccountError(f'"url" in {account.setting} must be an https URL, not {url!r:.80}.')
    if parts.scheme == "http" and not is_loopback(host):
        raise AccountError(f"{host} needs https, because plain http would expose your password.")
    own = urlsplit(account.get("url")).hostname or ""
    if not is_related(host, own):
        raise ServerRefusedError(
            f"{own} redirects to {host}, and your password is not sent there. If that is your server, set it as the "
            f"url."
        )
    account.allow(host)


def is_related(host: str, own: str) -> bool:
    """Return whether it is the same server, one below its name, or another of the same provider.

    A sibling name may belong to someone else, as below co.uk or github.io.
    """
    if host == own or host == own.removeprefix("www."):
        return True
    if is_loopback(own) or "." not in own or own.replace(".", "").isdigit():
        return False
    provider = [domain for domain in PROVIDERS if own == domain or own.endswith(f".{domain}")]
    return any(host.endswith(f".{domain}") for domain in (own, *provider))
