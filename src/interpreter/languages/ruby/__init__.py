"""Ruby blocks."""

from __future__ import annotations

from pathlib import Path

from interpreter.languages.program import ProgramLanguage
from interpreter.runtimes import built_in

__all__ = ["Ruby"]


class Ruby(built_in.Ruby, ProgramLanguage):
    """Ruby with the variables of earlier blocks."""

    shared_form = "json"
    arguments = (str(Path(__file__).with_name("driver.rb")), "{commands}", "{replies}")
    persistent = True
