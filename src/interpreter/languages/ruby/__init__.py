"""Ruby blocks."""

from __future__ import annotations

from pathlib import Path

from interpreter.runtimes.program import ProgramLanguage

__all__ = ["Ruby"]


class Ruby(ProgramLanguage):
    """Ruby with the variables of earlier blocks."""

    name = "Ruby"
    aliases = ("rb", "irb")
    file_extension = "rb"
    definitions = r"^(?:def|class|module)\s+([A-Za-z_]\w*[?!]?)|^([A-Za-z_$@]\w*)\s*=(?![=~])"
    quotes_paths = True
    shared_form = "json"
    cell_magic = "%%script ruby"
    programs = ("ruby",)
    arguments = (str(Path(__file__).with_name("driver.rb")), "{commands}", "{replies}")
    persistent = True
    install = "apt install ruby; macOS: brew install ruby"
    order = 11
    is_common = False
