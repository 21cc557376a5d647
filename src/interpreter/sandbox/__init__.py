"""The sandbox in which live sessions run: what they can reach, and what they are kept from."""

from interpreter.sandbox.containment import (
    Containment,
    containment_for,
    granting,
)
from interpreter.sandbox.denials import Denial
from interpreter.sandbox.proxy import Proxy, Verdict
from interpreter.sandbox.sandbox import (
    Limits,
    Sandbox,
    Widening,
)

__all__ = [
    "Containment",
    "Denial",
    "Limits",
    "Proxy",
    "Sandbox",
    "Verdict",
    "Widening",
    "containment_for",
    "granting",
]
