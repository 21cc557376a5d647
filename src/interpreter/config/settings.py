"""Every setting, declared once: its type, its default, its flag, its help."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from interpreter.config.homes import our_folder
from interpreter.config.setting import (
    GROUPS,
    Default,
    Setting,
    SettingsGroup,
    argument,
    setting,
    settings_class,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal

    from interpreter.computer_api import Computer
    from interpreter.config.setting import PathSetting
    from interpreter.llm import Llm
    from interpreter.messages import Message

ASKING = "Model"
RUNNING = "Running code"
APPROVAL = "Approval and safety"
PROMPTS = "What the model is told"
LOOPING = "Loop mode"
SHOWING = "Terminal"
KEEPING = "Conversations"
COMPUTER = "The computer API"
IGNORED = "Accepted for old scripts, without effect"

# In the order of the docs and of `--help`.
SECTIONS = (ASKING, APPROVAL, RUNNING, PROMPTS, LOOPING, SHOWING, KEEPING, COMPUTER, IGNORED)

_NOTHING_SENT = "nothing is ever sent to anyone but the model you chose"

_BREAKERS = (
    "The task is done.",
    "The task is impossible.",
    "Let me know what you'd like to do next.",
    "Please provide more information.",
)


def _prompt(name: str) -> Default:
    return Default(partial(read_prompt, name), f"the text of `prompts/{name}.md`")


def read_prompt(name: str) -> str:
    """The text of a file in prompts/."""
    from pathlib import Path

    file = Path(__file__).parents[1] / "agent" / "prompts" / f"{name}.md"
    return file.read_text(encoding="utf-8").strip()


def _conversations_folder() -> str:
    return str(our_folder() / "conversations")


# fmt: off
@settings_class("")
class InterpreterSettings(SettingsGroup):
    """The settings of an interpreter."""

    messages: list[Message] = setting(
        "The conversation so far.",
        KEEPING, default=Default(list, "an empty list"), kw_only=False,
    )
    llm: Llm = argument(default=None, kw_only=False)
    computer: Computer = argument(default=None, kw_only=False)

    auto_run: bool = setting(
        "Run code without asking first.",
        APPROVAL, default=False, flag="--auto_run", short="-y",
    )
    mode: Literal["ask", "auto-in-sandbox", "auto", "plan"] | None = setting(
        "When a block runs without asking: `ask` never, `auto` always, `auto-in-sandbox` as long as a sandbox holds "
        "it; `plan` runs blocks only in a read-only sandbox without network. Unset, `auto_run` decides. Rules that "
        "deny or ask hold in every mode (docs/policy.md).",
        APPROVAL, default=None, flag="--mode",
    )
    safe_mode: Literal["off", "ask", "auto"] = setting(
        "Scan code for dangers before it runs: never, when you say so, or always. What is grave, or cannot be "
        "scanned, is asked about even with `auto_run`.",
        APPROVAL, default="off", flag="--safe_mode", short="-safe", wrong_names=("safe",),
    )
    preview: bool = setting(
        "Before you are asked about a block, run it in a copy-on-write view of the workspace without network, and "
        "show what it would change. Linux; Python and shell.",
        APPROVAL, default=False, flag="--preview",
    )
    redact_secrets: bool = setting(
        "Take keys, tokens and private keys out of what code prints before it goes to the model.",
        APPROVAL, default=True, no_flag="--no_redact_secrets",
    )
    redact_journal: bool = setting(
        "Take keys, tokens and private keys out of what code prints before it is saved with the conversation.",
        APPROVAL, default=True, no_flag="--no_redact_journal",
    )
    sandbox: str = setting(
        "Run the sessions in a sandbox, in which nothing but the workspace can be written (`workspace`) or nothing "
        "at all (`read-only`), homes are hidden and the network is closed; `container:IMAGE` is one of Docker or "
        "Podman. See docs/security.md.",
        APPROVAL, default="off", choices=("off", "read-only", "workspace", "container:IMAGE"), flag="--sandbox",
        env="INTERPRETER_SANDBOX",
    )
    sandbox_hosts: list[str] = setting(
        "Hosts that a sandbox may reach: `pypi.org`, `*.pypi.org` for all below it, `example.com:8080`.",
        APPROVAL, default=Default(list, "none"), flag="--sandbox_hosts",
    )
    sandbox_env: list[str] = setting(
        "Variables that go into a sandbox although they look like keys.",
        APPROVAL, default=Default(list, "none"), flag="--sandbox_env",
    )
    sandbox_paths: list[str] = setting(
        "More places that a sandbox sees: `~/data` to read, `~/data:rw` to write.",
        APPROVAL, default=Default(list, "none"), flag="--sandbox_paths",
    )
    sandbox_unix_sockets: bool = setting(
        "Let code in a sandbox use Unix sockets, for databases, tmux and the like. It then reaches every program of "
        "this machine whose socket file it can see.",
        APPROVAL, default=False,
    )
    sandbox_memory: int | None = setting(
        "How many megabytes a process in a sandbox may use; all together, where control groups can be had. None is "
        "no limit.",
        APPROVAL, default=8192, minimum=64,
    )
    sandbox_cpu: int | None = setting(
        "How many seconds of processor time a process in a sandbox may use; None is no limit.",
        APPROVAL, default=3600, minimum=1,
    )
    sandbox_processes: int | None = setting(
        "How many processes and threads there may be in a sandbox; None is no limit.",
        APPROVAL, default=1024, minimum=16,
    )
    sandbox_file_size: int | None = setting(
        "How many megabytes a file may have that is written in a sandbox; None is no limit.",
        APPROVAL, default=4096, minimum=1,
    )
    offline: bool = setting(
        "Use nothing beyond this machine but the model server that you named.",
        APPROVAL, default=False, flag="--offline", short="-o", env="INTERPRETER_OFFLINE", wrong_names=("local",),
    )
    workspace: PathSetting[str] = setting(
        "Folder that the work is about; it stays when code changes the directory.",
        RUNNING, default=Default(os.getcwd, "the current folder"), flag="--workspace",
        env="INTERPRETER_WORKSPACE", wrong_names=("cwd",),
    )
    max_output: int = setting(
        "How many characters of a block's output the model gets: its beginning and its end, with a note on the "
        "rest.",
        RUNNING, default=2800, minimum=0, flag="--max_output", short="-xo",
    )
    max_blocks: int | None = setting(
        "How many blocks may run in one turn; None is no limit.",
        RUNNING, default=50, minimum=1, flag="--max_blocks",
    )
    max_turns: int | None = setting(
        "How often the model may be asked in answer to one message; None is no limit.",
        RUNNING, default=None, minimum=1, flag="--max_turns",
    )
    question_timeout: float | None = setting(
        "How many seconds a question waits for the front ends that can answer it, before the answer is no. None waits"
        " as long as one of them is connected.",
        APPROVAL, default=None, minimum=0,
    )
    block_timeout: float | None = setting(
        "Stop a block after this many seconds; None lets it run.",
        RUNNING, default=None, minimum=0.001, flag="--block_timeout", env="INTERPRETER_BLOCK_TIMEOUT", headless=300,
        wrong_names=("timeout",),
    )
    undo_files: bool = setting(
        "Record what blocks do to the files of the workspace, so that it can be taken back.",
        RUNNING, default=True,
    )
    undo_max_file_bytes: int = setting(
        "Undo does not copy a larger file, except before a preview of it is applied.",
        RUNNING, default=64 * 1024 * 1024, minimum=0,
    )
    undo_max_bytes: int = setting(
        "Undo copies this much of the workspace at most: small files and texts first, then recent ones.",
        RUNNING, default=512 * 1024 * 1024, minimum=0,
    )
    undo_max_files: int = setting(
        "Undo copies this many files of the workspace at most. Entries beyond five times as many are not seen.",
        RUNNING, default=50_000, minimum=0,
    )
    system_message: str = setting(
        "What the model is told about its job.",
        PROMPTS, default=_prompt("system"), flag="--system_message", short="-sm",
    )
    custom_instructions: str = setting(
        "Your own words to the model, after the system message.",
        PROMPTS, default="", flag="--custom_instructions", short="-ci",
    )
    user_message_template: str = setting("How your message goes to the model.", PROMPTS, default="{content}")
    always_apply_user_message_template: bool = setting(
        "Use that template for all of your messages, not only for the last.",
        PROMPTS, default=False,
    )
    code_output_template: str = setting(
        "How output goes to a model without tools.",
        PROMPTS, default=_prompt("code_output"),
    )
    empty_code_output_template: str = setting(
        "What a model without tools is told when a block printed nothing.",
        PROMPTS, default=_prompt("empty_code_output"),
    )
    code_output_sender: Literal["user", "assistant"] = setting(
        "In whose name output goes to a model without tools.",
        PROMPTS, default="user",
    )
    shrink_images: bool = setting(
        "Scale images above 5 MB down before they go to the model.",
        PROMPTS, default=True, later="images are sent as they are",
    )
    loop: bool = setting(
        "Keep asking the model to go on until it says one of the closing sentences.",
        LOOPING, default=False, flag="--loop",
    )
    loop_message: str = setting("What the model is told each time.", LOOPING, default=_prompt("loop"))
    loop_breakers: list[str] = setting(
        "The sentences that end the loop.",
        LOOPING, default=Default(lambda: list(_BREAKERS), "; ".join(_BREAKERS)),
    )
    status_line: bool = setting(
        "Have a line under the prompt with the model, the context used, the cost and the folder.",
        SHOWING, default=True, no_flag="--no_status_line",
    )
    share_commands: bool = setting(
        "Let the model see what you run at the prompt with `!` and `>>>`.",
        SHOWING, default=True,
    )
    plain_text_display: bool = setting(
        "Print plain text: no colours, no Markdown, no boxes.",
        SHOWING, default=False, flag="--plain", short="-pl", wrong_names=("plain",),
    )
    terminal_images: Literal["auto", "kitty", "iterm", "sixel", "blocks", "off"] = setting(
        "How pictures are shown in the terminal; `auto` finds out what it can do.",
        SHOWING, default="auto", flag="--terminal_images", env="INTERPRETER_TERMINAL_IMAGES",
    )
    theme: Literal["auto", "light", "dark"] = setting(
        "Colours for a light or a dark background; `auto` finds out which it is.",
        SHOWING, default="auto", flag="--theme", env="INTERPRETER_THEME",
    )
    highlight_active_line: bool = setting(
        "Mark the line that is running.",
        SHOWING, default=True, short="-nhl", no_flag="--no_highlight_active_line",
    )
    multi_line: bool = setting(
        'Let a message that begins with `"""` go over several lines.',
        SHOWING, default=True, flag="--multi_line", short="-ml",
    )
    in_terminal_interface: bool = setting(
        "Whether the terminal holds this interpreter; it sets this itself.",
        SHOWING, default=False,
    )
    verbose: bool = setting("Tell more about what happens.", SHOWING, default=False, flag="--verbose", short="-v")
    debug: bool = setting(
        "Tell everything about what happens.",
        SHOWING, default=False, flag="--debug", short="-debug",
    )
    speak_messages: bool = setting(
        "Read the model's messages aloud.",
        SHOWING, default=False, flag="--speak_messages", short="-sp", later="messages are not spoken yet",
    )
    conversation_history: bool = setting(
        "Save the conversation as it happens; see docs/sessions.md.",
        KEEPING, default=True,
    )
    conversation_filename: str | None = setting(
        "File in the folder of conversations that gets the messages as JSON after each turn, besides the journal.",
        KEEPING, default=None,
    )
    conversation_history_path: PathSetting[str] = setting(
        "Folder that conversations are saved in.",
        KEEPING, default=Default(_conversations_folder, "`conversations` in the configuration folder"),
    )
    import_computer_api: bool = setting(
        "The same as `computer.import_computer_api`.",
        COMPUTER, default=False, alias_of="computer.import_computer_api",
    )
    import_skills: bool = setting(
        "The same as `computer.import_skills`.",
        COMPUTER, default=False, alias_of="computer.import_skills",
    )
    skills_path: PathSetting[str | None] = setting(
        "The same as `computer.skills_path`.",
        COMPUTER, default=None, alias_of="computer.skills_path",
    )
    sync_computer: bool = setting(
        "The `computer` object of the session and yours are the same.",
        IGNORED, default=False, inert="there is one computer, and code in sessions calls it",
    )
    os: bool = setting(
        "Let the model see the screen and use mouse and keyboard.",
        COMPUTER, default=False, flag="--os", short="-os",
    )
    os_max_steps: int | None = setting(
        "In OS mode, so many actions on the screen are done for one message; None is no limit.",
        COMPUTER, default=200, minimum=1, flag="--os_max_steps",
    )
    os_max_pictures: int | None = setting(
        "In OS mode, so many pictures of the screen go to the model at most, the newest; when there are more, half "
        "of them are left out at once. None is all of them.",
        COMPUTER, default=8, minimum=1,
    )
    os_apps: list[str] = setting(
        "In OS mode, the applications that may be used, such as `mousepad` or `chromium*`; none named is all of "
        "them.",
        COMPUTER, default=Default(list, "an empty list"),
    )
    disable_telemetry: bool = setting(
        "There is no telemetry to turn off.",
        IGNORED, default=False, flag="--disable_telemetry", short="-dt", env="DISABLE_TELEMETRY",
        inert=_NOTHING_SENT,
    )
    anonymized_telemetry: bool = setting("There is no telemetry.", IGNORED, default=False, inert=_NOTHING_SENT)
    contribute_conversation: bool = setting(
        "Conversations are never sent anywhere.",
        IGNORED, default=False, flag="--contribute_conversation", inert=_NOTHING_SENT,
    )


@settings_class("llm")
class LlmSettings(SettingsGroup):
    """The settings of the model, `llm.*`."""

    model: str = setting(
        "Model to ask, with a provider in front where it needs one: `gpt-4o`, `ollama/llama3.1`, `openai/my-model`.",
        ASKING, default="gpt-4o", flag="--model", short="-m", env="INTERPRETER_MODEL",
    )
    temperature: float | None = setting(
        "How freely the model words things; 0 is the most predictable, None leaves it to the server.",
        ASKING, default=0, minimum=0, flag="--temperature", short="-t",
    )
    supports_vision: bool | None = setting(
        "Whether the model can look at images; None finds out.",
        ASKING, default=None, flag="--llm_supports_vision", short="-lsv", no_flag="--no-llm_supports_vision",
        wrong_names=("vision",),
    )
    supports_functions: bool | None = setting(
        "Whether the model can call tools; without, it writes its code in fenced blocks. None finds out.",
        ASKING, default=None, flag="--llm_supports_functions", short="-lsf", no_flag="--no-llm_supports_functions",
        wrong_names=("function_calling_llm",),
    )
    model_profile: Literal["full", "short", "minimal", "tiny"] | None = setting(
        "How the model is asked: `full` for large ones, `short`, `minimal` and `tiny` for smaller ones; None "
        "chooses by its name, its size and where it runs.",
        ASKING, default=None, flag="--model_profile",
    )
    context_window: int | None = setting(
        "How many tokens the model can read; None finds out.",
        ASKING, default=None, minimum=1, flag="--context_window", short="-cw",
    )
    max_tokens: int | None = setting(
        "How many tokens one reply may have; None leaves it to the server.",
        ASKING, default=None, minimum=1, flag="--max_tokens", short="-x",
    )
    max_budget: float | None = setting(
        "Stop before the request that might bring what the session has cost above this many US dollars. Of a model "
        "whose price is not known, a dollar is 100,000 tokens, unless `llm.max_budget_tokens` is set.",
        ASKING, default=None, minimum=0, flag="--max_budget", short="-b", wrong_names=("budget",),
    )
    max_budget_tokens: int | None = setting(
        "Stop before the request that might bring the tokens of the session above this many, read and written, "
        "whatever they cost.",
        ASKING, default=None, minimum=0, flag="--max_budget_tokens",
    )
    fallback_model: str | None = setting(
        "Model to ask for the rest of the turn when the first one cannot be reached, is overloaded or has reached a "
        "rate limit, and has not said anything.",
        ASKING, default=None, flag="--fallback_model", env="INTERPRETER_FALLBACK_MODEL",
    )
    api_base: str | None = setting(
        "Address of the model server, up to and with its `/v1`.",
        ASKING, default=None, flag="--api_base", short="-ab", env="INTERPRETER_API_BASE",
    )
    api_key: str | None = setting(
        "Key for the model server; None takes the provider's own variable.",
        ASKING, default=None, flag="--api_key", short="-ak", secret=True,
    )
    api_version: str | None = setting(
        "API version, for the servers that want one.",
        ASKING, default=None, flag="--api_version", short="-av",
    )
    timeout: float = setting(
        "Longest silence of the model server, in seconds, before it counts as lost. Only words and calls of the model "
        "end a silence, not keep-alive bytes.",
        ASKING, default=600, minimum=0.001, flag="--llm_timeout",
    )
    reply_timeout: float = setting(
        "Longest time for one whole reply, in seconds.",
        ASKING, default=21600, minimum=0.001,
    )
    connect_timeout: float = setting(
        "How many seconds the model server has to take the connection.",
        ASKING, default=10, minimum=0.001,
    )
    max_retries: int = setting(
        "How often a request is sent again after a rate limit, an overload or a lost connection.",
        ASKING, default=4, minimum=0, flag="--max_retries",
    )
    max_retry_wait: float = setting(
        "Longest wait, in seconds, that a rate limit may ask for.",
        ASKING, default=120, minimum=0,
    )
    completions: Callable[..., Any] | None = setting(
        "Your own way to the model: called with `model`, `messages`, `stream` and what else is set, it yields "
        "OpenAI chunk dicts. None asks the server.",
        ASKING, default=None,
    )
    vision_renderer: Callable[..., Any] | None = setting(
        "Turns an image into words for a model without vision; None leaves images out.",
        ASKING, default=None, later="images are not described yet",
    )
    execution_instructions: str | Literal[False] | None = setting(
        "How a model without tools is told to write code; empty or False leaves it out.",
        PROMPTS, default=_prompt("execution"),
    )


@settings_class("computer")
class ComputerSettings(SettingsGroup):
    """The settings of the computer, `computer.*`."""

    python: PathSetting[str | None] = setting(
        "Python that runs the blocks: a path, `in-process` for the one that runs us, with your objects in reach and "
        "no protection from crashes; None takes the active virtual environment, else our own.",
        RUNNING, default=None, flag="--python", env="INTERPRETER_PYTHON",
    )
    shell: PathSetting[str | None] = setting(
        "Shell that runs the blocks; None takes `$SHELL` if it is bash or zsh, else bash.",
        RUNNING, default=None, flag="--shell",
    )
    shell_rc: bool = setting("Load the shell's own start-up files.", RUNNING, default=False, flag="--shell_rc")
    undo_snapshots: int = setting(
        "How many earlier states of a session can be returned to, fewer when memory is short; 0 keeps none, and a "
        "crash then costs all variables.",
        RUNNING, default=20, minimum=0,
    )
    active_line_detection: bool = setting(
        "Report which line is running.",
        RUNNING, default=True, env="INTERPRETER_ACTIVE_LINE_DETECTION",
    )
    import_computer_api: bool = setting(
        "Tell the model of the `computer` object that code can use; on at the command line, never for small models.",
        COMPUTER, default=False,
    )
    import_skills: bool = setting("Have your skills by their names in the Python session.", COMPUTER, default=False)
    save_skills: bool = setting("Let code save new skills.", COMPUTER, default=True)
    skills_path: PathSetting[str | None] = setting(
        "Folder of your skills; None is `skills` in the configuration folder.",
        COMPUTER, default=None,
    )
    screenshot_size: int = setting(
        "Longest side, in pixels, of pictures of the screen: as large as the model sees well.",
        COMPUTER, default=1280, minimum=200,
    )
    emit_images: bool = setting("Give the model the images that code shows.", COMPUTER, default=True)
    browser_path: PathSetting[str | None] = setting(
        "Browser that `computer.browser` drives: Chrome, Chromium, Edge or Brave, or Playwright's own Firefox; None "
        "finds one.",
        COMPUTER, default=None,
    )
    browser_headless: bool | None = setting(
        "Run that browser without a window; None does where there is no display or nobody at the keyboard.",
        COMPUTER, default=None,
    )
    search_url: str = setting(
        "Page that `computer.browser.search` asks; the words go where `{query}` is.",
        COMPUTER, default="https://html.duckduckgo.com/html/?q={query}",
    )
    system_message: str | None = setting(
        "What the model is told about the `computer` object; None lists it where `import_computer_api` is on.",
        COMPUTER, default=None,
    )
    max_output: int | None = setting(
        "As `max_output`, for `computer.run` alone; None is the same.",
        COMPUTER, default=None, minimum=0,
    )
    offline: bool | None = setting("As `offline`, for the computer API; None is the same.", COMPUTER, default=None)
    verbose: bool | None = setting("As `verbose`, for the computer API; None is the same.", COMPUTER, default=None)
    debug: bool | None = setting("As `debug`, for the computer API; None is the same.", COMPUTER, default=None)
    mail_account: dict[str, Any] | None = setting(
        "Your mail: `imap`, `smtp`, `user` and `password_variable` or `password_command`; None is Mail on macOS. "
        "See docs/mail-and-calendar.md.",
        COMPUTER, default=None,
    )
    calendar_account: dict[str, Any] | None = setting(
        "Your calendars: `url`, `user` and a password as above for CalDAV, or `path` of `.ics` files; None is "
        "Calendar on macOS.",
        COMPUTER, default=None,
    )
    contacts_account: dict[str, Any] | None = setting(
        "Your contacts: `url`, `user` and a password as above for CardDAV, or `path` of `.vcf` files; None is "
        "Contacts on macOS.",
        COMPUTER, default=None,
    )
    api_base: str | None = setting(
        "There is no hosted API behind the `computer` object.",
        IGNORED, default=None, inert=_NOTHING_SENT,
    )
# fmt: on


def _place(row: Setting) -> tuple[int, bool]:
    return SECTIONS.index(row.section), bool(row.alias_of)


# All settings by section; in a section, an alias comes after what it stands for.
SETTINGS: tuple[Setting, ...] = tuple(sorted((row for rows in GROUPS.values() for row in rows.values()), key=_place))
