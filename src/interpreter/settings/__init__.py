"""Settings: one table, and the objects whose attributes are checked against it."""

from interpreter.settings.group import (
    SettingsGroup,
    apply,
    closest,
    copy_settings,
    from_environment,
    headless_defaults,
    origins,
    sources,
    speaking_as,
    unknown_setting,
)
from interpreter.settings.row import Default, Setting
from interpreter.settings.table import SETTINGS, read_prompt, setting
from interpreter.settings.values import check_value, parse_value

__all__ = [
    "SETTINGS",
    "Default",
    "Setting",
    "SettingsGroup",
    "apply",
    "check_value",
    "closest",
    "copy_settings",
    "from_environment",
    "headless_defaults",
    "origins",
    "parse_value",
    "read_prompt",
    "setting",
    "sources",
    "speaking_as",
    "unknown_setting",
]
