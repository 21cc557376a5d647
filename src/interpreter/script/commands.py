"""`%script`."""

from __future__ import annotations

from functools import partial

from interpreter.frontends.terminal import sessions

export_script = partial(sessions.export, "script")
