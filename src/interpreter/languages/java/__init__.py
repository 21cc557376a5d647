"""Java blocks: snippets as in jshell, or whole classes with a `main`."""

from __future__ import annotations

from pathlib import Path

from interpreter.runtimes.program import ProgramLanguage

__all__ = ["Java"]


class Java(ProgramLanguage):
    """Java with the variables, methods and classes of earlier blocks; it needs a JDK."""

    name = "Java"
    aliases = ("jshell",)
    file_extension = "java"
    comment = "//"
    definitions = (
        r"^(?:public\s+|static\s+|final\s+)*(?:class|interface|record|enum)\s+([A-Za-z_]\w*)"
        r"|^[\w<>\[\]]+\s+([a-z_]\w*)\s*="
    )
    quotes_paths = True
    shared_form = "json"
    # jshell, beside `java`, comes with a JDK but not with a JRE.
    programs = ("jshell",)
    arguments = (
        "-Xshare:auto",
        "-XX:TieredStopAtLevel=1",
        str(Path(__file__).with_name("Driver.java")),
        "{commands}",
        "{replies}",
    )
    persistent = True
    install = "apt install default-jdk-headless; macOS: brew install openjdk (17 or later)"
    order = 13
    is_common = False

    def command(self) -> list[str]:
        jshell, *arguments = super().command()
        return [str(Path(jshell).with_name("java")), *arguments]
