"""What `offline` forbids: any server but one on this machine, or one that the user named."""

from __future__ import annotations

from collections.abc import Mapping

from interpreter.errors import OfflineError
from interpreter.llm.catalogue import ROWS
from interpreter.llm.providers import identify


def check(model: str, environ: Mapping[str, str], api_base: str | None) -> None:
    """Refuse a model that is served where the user has named no address."""
    if api_base:
        return
    row = ROWS.get(identify(model)[0])
    if row is not None and (row.is_local or any(map(environ.get, row.base_variables))):
        return
    raise OfflineError(
        f"{model} is not on this machine, and `offline` is set, so it is not asked. Use a local model (see "
        "interpreter --local), name your server with --api_base, or go without --offline."
    )
