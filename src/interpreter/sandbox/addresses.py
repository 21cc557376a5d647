"""Which hosts and addresses the proxy may connect to."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
TRANSLATED = ipaddress.ip_network("64:ff9b::/96")  # an IPv4 address in the last 32 bits
SITE_LOCAL = ipaddress.ip_network("fec0::/10")  # no longer in use, and no longer listed as private
USUAL_PORTS = (80, 443)


def is_listed(host: str, port: int, listed: Iterable[str]) -> bool:
    """Whether the list has the host: `pypi.org`, `*.pypi.org` for all below it, `host:8080` for another port."""
    host = host.rstrip(".").lower()
    for entry in listed:
        name, _, wanted = entry.strip().lower().partition(":")
        if port not in ((int(wanted),) if wanted.isdigit() else USUAL_PORTS):
            continue
        if host == name or (name.startswith("*.") and host.endswith(name[1:])):
            return True
    return False


def is_public(text: str) -> bool:
    """Whether an address is one of the open net: not this machine, not its neighbours, no metadata service."""
    address = ipaddress.ip_address(text.partition("%")[0])
    return all(inner.is_global and not inner.is_multicast and inner not in SITE_LOCAL for inner in within(address))


def within(address: Address) -> list[Address]:
    """The address, and the IPv4 addresses that are wrapped up in it."""
    found = [address]
    if isinstance(address, ipaddress.IPv6Address):
        wrapped = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
        if address in TRANSLATED:
            wrapped.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
        if address.ipv4_mapped is not None:
            found = []  # what it wraps is what it is
        found += [inner for inner in wrapped if inner is not None]
    return found
