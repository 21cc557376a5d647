"""Settings: their declarations, and the objects that hold them."""

from interpreter.config.settings.declared import (
    SETTINGS,
    ComputerSettings,
    InterpreterSettings,
    LlmSettings,
    read_prompt,
)
from interpreter.config.settings.group import (
    SettingsGroup,
    apply,
    closest,
    copy_settings,
    from_environment,
    headless_defaults,
    origins,
    setting_named,
    sources,
    speaking_as,
    unknown_setting,
)
from interpreter.config.settings.setting import (
    Default,
    Setting,
    check_value,
    parse_value,
)

__all__ = [
    "SETTINGS",
    "ComputerSettings",
    "Default",
    "InterpreterSettings",
    "LlmSettings",
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
    "setting_named",
    "sources",
    "speaking_as",
    "unknown_setting",
]
