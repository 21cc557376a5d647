"""Formats that a conversation may contain and show, but that no runtime executes."""

from __future__ import annotations

from interpreter.runtimes.base import BaseLanguage


class Displayed(BaseLanguage):
    """Shown to the user, so that it does nothing to the machine."""

    analysis = "interpreter.policy.analysis:analyze_displayed"


class HTML(Displayed):
    name = "HTML"
    file_extension = "html"
    cell_magic = "%%html"


class React(Displayed):
    name = "React"
    file_extension = "jsx"
    lexer = "jsx"


class Markdown(Displayed):
    name = "Markdown"
    file_extension = "md"


class SVG(Displayed):
    name = "SVG"
    file_extension = "svg"
    lexer = "xml"


DISPLAYED = (HTML, React, Markdown, SVG)
