"""What a page would load or send. The code is only searched for addresses and for what can make requests."""

from __future__ import annotations

import re
from collections.abc import Mapping

from interpreter.policy.analysis.effects import Effect
from interpreter.policy.analysis.notes import Notes

_ADDRESS = re.compile(r"""(?:https?:|wss?:)?//[\w.-]+\.[a-z]{2,}[^\s"'`<>)]*""", re.IGNORECASE)
_NOT_LOADED = re.compile(r"<a\b[^>]*>|//www\.w3\.org/|^\s*//.*$", re.IGNORECASE | re.MULTILINE)
_ASKS = re.compile(
    r"\b(fetch|XMLHttpRequest|WebSocket|EventSource|sendBeacon|RTCPeerConnection|importScripts|eval|Function|Worker)\b"
    r"|\bimport\s*\(|\bnpm install\b|\blocation\b|\.(?:src|href|action)\s*="
)


def analyze(code: str, notes: Notes, known: Mapping[str, tuple[Effect, ...]]) -> dict[str, tuple[Effect, ...]]:
    """Record what a page may load or send when a browser shows it; it changes no file."""
    doing = notes.step(notes.language, "shown in a browser", 1)
    for address in dict.fromkeys(_ADDRESS.findall(_NOT_LOADED.sub("", code))):
        doing.network(address if "://" in address else f"https:{address}", "get")
    if _ASKS.search(code):
        doing.network("", "send")
    return {}
