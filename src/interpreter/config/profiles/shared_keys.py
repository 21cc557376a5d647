"""Profiles with a key in them that others on this machine can read."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator

from interpreter.config.profiles.profile import Profile

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_IN_CODE = re.compile(r"""api_key\s*=\s*["']([^"'\n]+)["']""")


def shared_keys(profile: Profile) -> Iterator[str]:
    """A line for the user if the file has a key in it and is not theirs alone."""
    path = profile.place.address
    if profile.place.is_builtin or os.name != "posix" or not os.stat(path).st_mode & _OTHERS:
        return
    if _has_key(profile):
        yield f"{path} has a key in it, and others on this machine can read it: chmod 600 {path}"


def _has_key(profile: Profile) -> bool:
    from interpreter.llm.secrets import redacted, secret_values

    values = [value for name, value in profile.settings.items() if name.endswith("api_key")]
    # A value that is not in the file came from a variable.
    keys = [value for value in values if isinstance(value, str) and value in profile.text]
    keys += _IN_CODE.findall(profile.code)
    return bool(secret_values({}, [(key, key) for key in keys])) or bool(redacted(profile.text, {})[1])
