"""R blocks: figures are images, data frames are tables."""

from __future__ import annotations

from pathlib import Path

from interpreter.runtimes.program import ProgramLanguage

__all__ = ["R"]


class R(ProgramLanguage):
    """R with the variables of earlier blocks."""

    name = "R"
    aliases = ("rscript", "rlang")
    file_extension = "R"
    definitions = r"^([A-Za-z.][\w.]*)\s*(?:<-|=(?!=))"
    quotes_paths = True
    shared_form = "r"
    lexer = "r"
    cell_magic = "%%script Rscript -"
    programs = ("Rscript",)
    arguments = ("--no-save", "--no-restore", str(Path(__file__).with_name("driver.R")), "{commands}", "{replies}")
    persistent = True
    install = "apt install r-base-core; macOS: brew install r"
    order = 10
    is_common = False
