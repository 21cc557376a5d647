"""`--completion`: scripts that complete flags and their values in bash, zsh and fish, made from the table of flags."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

from interpreter.config.settings import SETTINGS, Setting
from interpreter.frontends.terminal.flags import COMMANDS, Command

PROGRAMS = ("interpreter", "i")
FILES, FOLDERS, PROFILES, ANY = "files", "folders", "profiles", "any"
_FOLDERS = ("workspace",)


@dataclass(frozen=True)
class Flag:
    """One flag with its spellings, its explanation, and what may follow it."""

    names: tuple[str, ...]
    help: str
    takes: str = ""
    """Empty for a switch; a kind above, or `choices`."""
    choices: tuple[str, ...] = ()


def script(shell: str) -> str:
    """The script for a shell."""
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell]()


def flags() -> Iterator[Flag]:
    """All flags, as they are offered."""
    for row in SETTINGS:
        if row.flag or row.no_flag:
            yield from _of_setting(row)
    for command in COMMANDS:
        names = tuple(filter(None, (command.flag, command.short)))
        yield Flag(names, _line(command.help), _takes_of(command), command.choices)


def _of_setting(row: Setting) -> Iterator[Flag]:
    positive = tuple(filter(None, (row.flag, row.short if row.flag else "")))
    negative = tuple(filter(None, (row.no_flag, "" if row.flag else row.short)))
    if row.kind != "bool":
        takes = "choices" if row.choices else FOLDERS if row.leaf in _FOLDERS else FILES if row.kind == "path" else ANY
        yield Flag(positive, _line(row.help), takes, row.choices)
        return
    if positive:
        yield Flag(positive, _line(row.help))
    if negative or row.flag:
        yield Flag(negative or (f"--no-{row.flag[2:]}",), f"Not: {_line(row.help)}")


def _takes_of(command: Command) -> str:
    if command.choices:
        return "choices"
    if command.name in ("profile", "reset_profile"):
        return PROFILES
    return FILES if command.value == "FILE" else ANY if command.value else ""


def _line(text: str) -> str:
    """The first sentence, without marks that a shell would take for its own."""
    return text.replace("`", "").replace('"', "").partition(". ")[0].rstrip(".").replace("'", "").replace("$", "")


def _profiles_folder() -> str:
    if sys.platform == "darwin":
        return "$HOME/Library/Application Support/open-interpreter/profiles"
    return "${XDG_CONFIG_HOME:-$HOME/.config}/open-interpreter/profiles"


def _builtin() -> str:
    from interpreter.config.profiles import builtin_names

    return " ".join(builtin_names())


# -- bash ----------------------------------------------------------------------------------------------------------

_BASH = r"""# Completion for bash. In ~/.bashrc: source <(interpreter --completion bash)
_interpreter() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} own
    COMPREPLY=()
    # `--flag=value` comes in three words.
    [[ $cur == "=" ]] && cur=""
    [[ $prev == "=" ]] && prev=${COMP_WORDS[COMP_CWORD-2]}
    # Dashes and underscores are the same.
    [[ $prev == --* ]] && own=${prev:2} && prev=--${own//-/_}
    case $prev in
@CASES@
    esac
    if [[ $cur == -* ]]; then
        local flags="@FLAGS@"
        [[ $cur == --*-* ]] && flags="$flags @DASHED@"
        COMPREPLY=($(compgen -W "$flags" -- "$cur"))
    fi
}
complete -o default -F _interpreter @PROGRAMS@
"""


def _bash() -> str:
    found = list(flags())
    names = [name for flag in found for name in flag.names]
    dashed = [_dashed(name) for name in names if "_" in name]
    cases = [f"        {'|'.join(flag.names)}) {_bash_values(flag)} ;;" for flag in found if flag.takes]
    return (
        _BASH.replace("@CASES@", "\n".join(cases))
        .replace("@FLAGS@", " ".join(names))
        .replace("@DASHED@", " ".join(dashed))
        .replace("@PROGRAMS@", " ".join(PROGRAMS))
        .rstrip()
    )


def _bash_values(flag: Flag) -> str:
    match flag.takes:
        case "choices":
            return f'COMPREPLY=($(compgen -W "{" ".join(flag.choices)}" -- "$cur")); return'
        case "folders":
            return "compopt -o dirnames +o default 2>/dev/null; return"
        case "profiles":
            listed = f'own=$(cd "{_profiles_folder()}" 2>/dev/null && ls)'
            return f'{listed}; COMPREPLY=($(compgen -W "{_builtin()} $own" -f -- "$cur")); return'
        case _:
            return "return"  # bash's own: files


def _dashed(name: str) -> str:
    return "--" + name[2:].replace("_", "-")


# -- zsh -----------------------------------------------------------------------------------------------------------

_ZSH = r"""#compdef @PROGRAMS@
# Completion for zsh. In ~/.zshrc, after compinit: source <(interpreter --completion zsh)
_interpreter_profiles() {
    local -a names
    names=(@BUILTIN@ "@FOLDER@"/*(N:t))
    compadd -a names
    _files
}
_interpreter() {
    _arguments -M 'm:{-_}={_-}' \
@FLAGS@
        '*:message:_files'
}
compdef _interpreter @PROGRAMS@
"""


def _zsh() -> str:
    lines = [f"        {spec} \\" for flag in flags() for spec in _zsh_specs(flag)]
    return (
        _ZSH.replace("@FLAGS@", "\n".join(lines))
        .replace("@BUILTIN@", _builtin())
        .replace("@FOLDER@", _profiles_folder())
        .replace("@PROGRAMS@", " ".join(PROGRAMS))
        .rstrip()
    )


def _zsh_specs(flag: Flag) -> Iterator[str]:
    words = flag.help.replace("[", "(").replace("]", ")").replace(":", "\\:")
    action = {
        "choices": f":value:({' '.join(flag.choices)})",
        FILES: ":file:_files",
        FOLDERS: ":folder:_files -/",
        PROFILES: ":profile:_interpreter_profiles",
        ANY: ":value: ",
    }.get(flag.takes, "")
    for name in flag.names:
        yield f"'{name}[{words}]{action}'"


# -- fish ----------------------------------------------------------------------------------------------------------


_FISH = r"""# Completion for fish: interpreter --completion fish > ~/.config/fish/completions/interpreter.fish
function __interpreter_profiles
    set -l config $HOME/.config
    set -q XDG_CONFIG_HOME; and set config $XDG_CONFIG_HOME
    for file in "@FOLDER@"/*
        string replace -r '.*/' '' -- $file
    end
end
"""


def _fish() -> str:
    # fish has no ${NAME:-otherwise}.
    folder = _profiles_folder().replace("${XDG_CONFIG_HOME:-$HOME/.config}", "$config")
    lines = [_FISH.replace("@FOLDER@", folder)]
    for program in PROGRAMS:
        for flag in flags():
            spelled = " ".join(_fish_name(name) for name in flag.names)
            lines.append(f"complete -c {program} {spelled} {_fish_values(flag)}-d '{flag.help}'")
    return "\n".join(lines)


def _fish_name(name: str) -> str:
    if name.startswith("--"):
        return f"-l {name[2:]}"
    return f"-s {name[1:]}" if len(name) == 2 else f"-o {name[1:]}"


def _fish_values(flag: Flag) -> str:
    match flag.takes:
        case "choices":
            return f"-x -a '{' '.join(flag.choices)}' "
        case "folders":
            return "-x -a '(__fish_complete_directories)' "
        case "files":
            return "-r -F "
        case "profiles":
            return f"-r -F -a '{_builtin()} (__interpreter_profiles)' "
        case "any":
            return "-x "
        case _:
            return ""
