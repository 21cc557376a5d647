"""Java blocks: snippets as in jshell, or whole classes with a `main`."""

from __future__ import annotations

from pathlib import Path

from interpreter.languages.program import ProgramLanguage
from interpreter.runtimes import built_in

__all__ = ["Java"]


class Java(built_in.Java, ProgramLanguage):
    """Java with the variables, methods and classes of earlier blocks; it needs a JDK."""

    shared_form = "json"
    # jshell, beside `java`, comes with a JDK but not with a JRE.
    arguments = (
        "-Xshare:auto",
        "-XX:TieredStopAtLevel=1",
        str(Path(__file__).with_name("Driver.java")),
        "{commands}",
        "{replies}",
    )
    persistent = True

    def command(self) -> list[str]:
        jshell, *arguments = super().command()
        return [str(Path(jshell).with_name("java")), *arguments]
