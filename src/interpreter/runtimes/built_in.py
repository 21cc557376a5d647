"""The languages that come with the package, as rows: what other parts know about them without importing them.

A language's own class extends its row, and adds how it runs. It is imported when its first block runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from interpreter.runtimes.base import BaseLanguage


class _Row(BaseLanguage):
    has_version = False
    sandboxable = True
    handles_interrupts = True


class Python(_Row):
    implementation = "interpreter.runtimes.python:Python"
    in_process = "interpreter.languages.in_process:InProcessPython"  # with `computer.python = "in-process"`
    name = "Python"
    aliases = ("py", "python3", "ipython")
    file_extension = "py"
    definitions = r"^(?:(?:async\s+)?def\s+|class\s+)([A-Za-z_]\w*)|^([A-Za-z_]\w*)\s*(?::[^=\n]+)?=(?!=)"
    quotes_paths = True
    analysis = "interpreter.policy.analysis.python:analyze"
    scanners = ("interpreter.scanners.scanner:BANDIT", "interpreter.scanners.scanner:SEMGREP")
    scan_parts = "interpreter.scanners.scanner:python_parts"
    cell_magic = ""
    script = "interpreter.script.steps:add_python"
    preview = "interpreter.preview.dry_run:PythonDryRun"
    has_version = restorable = True
    order = 1


class Shell(_Row):
    implementation = "interpreter.runtimes.shell:Shell"
    name = "Shell"
    aliases = ("bash", "sh", "zsh", "batch", "bat")
    file_extension = "sh"
    lexer = "bash"
    definitions = r"^(?:export\s+)?([A-Za-z_]\w*)="
    takes_keys = True
    explains_failures = False
    analysis = "interpreter.policy.analysis.shell:analyze"
    scanners = ("interpreter.scanners.scanner:SHELLCHECK", "interpreter.scanners.scanner:SEMGREP")
    cell_magic = "%%bash"
    cell_setup = "interpreter.export.notebook:notebook_setup"
    script = "interpreter.script.steps:add_shell"
    preview = "interpreter.preview.dry_run:ShellDryRun"
    has_version = restorable = True
    install = "apt install bash"
    order = 2


class JavaScript(_Row):
    implementation = "interpreter.languages.javascript:JavaScript"
    name = "JavaScript"
    aliases: Sequence[str] = ("js", "node", "nodejs", "ecmascript")
    file_extension = "js"
    comment = "//"
    definitions = r"^(?:const|let|var|(?:async\s+)?function\*?|class)\s+([A-Za-z_$][\w$]*)"
    quotes_paths = True
    analysis: str | None = "interpreter.languages.javascript.analysis:analyze"
    scanners: Sequence[str] = ("interpreter.scanners.scanner:SEMGREP",)
    cell_magic: str | None = "%%script node"
    has_version = True
    programs = ("node",)
    install = "apt install nodejs; macOS: brew install node; others: nodejs.org (18 or later)"
    order = 3


class R(_Row):
    implementation = "interpreter.languages.r:R"
    name = "R"
    aliases = ("rscript", "rlang")
    file_extension = "R"
    definitions = r"^([A-Za-z.][\w.]*)\s*(?:<-|=(?!=))"
    quotes_paths = True
    lexer = "r"
    analysis = "interpreter.languages.r.analysis:analyze"
    cell_magic = "%%script Rscript -"
    programs = ("Rscript",)
    install = "apt install r-base-core; macOS: brew install r"
    order = 10
    is_common = False


class Ruby(_Row):
    implementation = "interpreter.languages.ruby:Ruby"
    name = "Ruby"
    aliases = ("rb", "irb")
    file_extension = "rb"
    definitions = r"^(?:def|class|module)\s+([A-Za-z_]\w*[?!]?)|^([A-Za-z_$@]\w*)\s*=(?![=~])"
    quotes_paths = True
    cell_magic = "%%script ruby"
    programs = ("ruby",)
    install = "apt install ruby; macOS: brew install ruby"
    order = 11
    is_common = False


class SQL(_Row):
    implementation = "interpreter.languages.sql:SQL"
    name = "SQL"
    aliases = ("duckdb", "sqlite")
    file_extension = "sql"
    comment = "--"
    lexer = "sql"
    analysis = "interpreter.policy.analysis.sql:analyze"
    has_version = True
    install = "interpreter --install sql, for DuckDB"
    order = 12
    is_common = False


class Java(_Row):
    implementation = "interpreter.languages.java:Java"
    name = "Java"
    aliases = ("jshell",)
    file_extension = "java"
    comment = "//"
    definitions = (
        r"^(?:public\s+|static\s+|final\s+)*(?:class|interface|record|enum)\s+([A-Za-z_]\w*)"
        r"|^[\w<>\[\]]+\s+([a-z_]\w*)\s*="
    )
    quotes_paths = True
    programs = ("jshell",)
    install = "apt install default-jdk-headless; macOS: brew install openjdk (17 or later)"
    order = 13
    is_common = False


class TypeScript(JavaScript):
    implementation = "interpreter.languages.javascript.typescript:TypeScript"
    name = "TypeScript"
    aliases = ("ts", "tsx")
    file_extension = "ts"
    lexer = "typescript"
    definitions = r"^(?:const|let|var|(?:async\s+)?function\*?|class|enum|interface|type)\s+([A-Za-z_$][\w$]*)"
    analysis = None
    scanners = ()
    cell_magic = None
    install = "Node.js 22.13 or later; with an older one also npm install -g esbuild"
    order = 14
    is_common = False


class Fish(_Row):
    implementation = "interpreter.languages.fish:Fish"
    name = "Fish"
    file_extension = "fish"
    definitions = r"^(?:function\s+|set\s+(?:-\w+\s+)*)([A-Za-z_]\w*)"
    explains_failures = False
    cell_magic = "%%script fish"
    programs = ("fish",)
    install = "apt install fish; macOS: brew install fish"
    order = 15
    is_common = False


class HTML(_Row):
    implementation = "interpreter.languages.html:HTML"
    name = "HTML"
    keeps_variables = False
    aliases: Sequence[str] = ("htm",)
    file_extension = "html"
    quotes_paths = True
    analysis = "interpreter.languages.html.analysis:analyze"
    cell_magic: str | None = "%%html"
    install = "apt install chromium-headless-shell, or Chrome"
    order = 16
    is_common = False


class React(HTML):
    implementation = "interpreter.languages.html:React"
    name = "React"
    aliases = ("jsx", "tsx")
    file_extension = "jsx"
    comment = "//"
    lexer = "jsx"
    cell_magic = None
    programs = ("npm",)
    install = "apt install npm; macOS: brew install node"
    order = 17


class PowerShell(_Row):
    implementation = "interpreter.languages.powershell:PowerShell"
    name = "PowerShell"
    keeps_variables = False
    aliases = ("pwsh", "posh")
    file_extension = "ps1"
    lexer = "powershell"
    cell_magic = "%%script pwsh -NoProfile -Command -"
    programs = ("pwsh",)
    install = "see https://aka.ms/install-powershell; macOS: brew install powershell"
    order = 20
    is_common = False


class AppleScript(_Row):
    implementation = "interpreter.languages.applescript:AppleScript"
    name = "AppleScript"
    keeps_variables = False
    file_extension = "applescript"
    comment = "--"
    cell_magic = "%%script osascript"
    programs = ("osascript",)
    install = "it comes with macOS, and runs nowhere else"
    order = 21
    is_common = False


ROWS: tuple[type[BaseLanguage], ...] = (
    Python,
    Shell,
    JavaScript,
    R,
    Ruby,
    SQL,
    Java,
    TypeScript,
    Fish,
    HTML,
    React,
    PowerShell,
    AppleScript,
)
