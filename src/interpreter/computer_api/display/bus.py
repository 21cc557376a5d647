"""The bus that programs tell of their windows on: where it is, and one question to it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from typing import Any

from interpreter.computer_api.display.elements import Key
from interpreter.errors import ComputerError

# A program that is busy answers late or never: nobody waits for it longer.
ONE_CALL = 2.0


class AccessibilityError(ComputerError):
    """The accessibility tree cannot be asked, and why."""


async def ask(
    bus: Any, key: Key, interface: str, member: str, signature: str, body: Iterable[Any], limit: float
) -> Any:
    from dbus_fast import DBusError, Message, MessageType

    message = Message(key[0], key[1], interface, member, signature=signature, body=list(body))
    try:
        async with asyncio.timeout(limit):
            reply = await bus.call(message)
    except (DBusError, OSError, EOFError, TimeoutError) as error:
        raise AccessibilityError(f"{key[0]} does not answer {member}: {error}") from error
    if reply is None or reply.message_type is MessageType.ERROR:
        raise AccessibilityError(f"{key[0]} refuses {member}")
    return reply.body


# When a bus last did not answer: everything would wait for it again and again.
silent: dict[str, float] = {}
LEFT_ALONE = 30.0


def session_bus() -> str:
    return os.environ.get("AT_SPI_BUS_ADDRESS") or os.environ.get("DBUS_SESSION_BUS_ADDRESS") or ""


async def address() -> str:
    """Where the accessibility bus of this session listens; the session bus starts it if need be."""
    from dbus_fast import BusType
    from dbus_fast.aio import MessageBus

    if known := os.environ.get("AT_SPI_BUS_ADDRESS"):
        return known
    bus = await MessageBus(bus_type=BusType.SESSION).connect()
    try:
        place = ("org.a11y.Bus", "/org/a11y/bus")
        return str((await ask(bus, place, "org.a11y.Bus", "GetAddress", "", [], ONE_CALL))[0])
    finally:
        bus.disconnect()
