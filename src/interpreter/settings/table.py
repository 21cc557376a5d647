"""The one table of settings."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

from interpreter.settings.row import Default, Setting

ASKING = "Model"
RUNNING = "Running code"
APPROVAL = "Approval and safety"
PROMPTS = "What the model is told"
LOOPING = "Loop mode"
SHOWING = "Terminal"
KEEPING = "Conversations"
COMPUTER = "The computer API"
IGNORED = "Accepted for old scripts, without effect"

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

    file = Path(__file__).parent.parent / "prompts" / f"{name}.md"
    return file.read_text(encoding="utf-8").strip()


def _conversations_folder() -> str:
    import os

    from platformdirs import user_config_dir

    return os.path.join(user_config_dir("open-interpreter"), "conversations")


def _current_folder() -> str:
    import os

    return os.getcwd()


# fmt: off
SETTINGS: tuple[Setting, ...] = (
    # The model
    Setting(
        "llm.model", "str", "gpt-4o",
        "Model to ask, with a provider in front where it needs one: `gpt-4o`, `ollama/llama3.1`, "
        "`openai/my-model`.",
        ASKING, flag="--model", short="-m", env="INTERPRETER_MODEL",
    ),
    Setting(
        "llm.temperature", "float", 0,
        "How freely the model words things; 0 is the most predictable, None leaves it to the server.",
        ASKING, optional=True, minimum=0, flag="--temperature", short="-t",
    ),
    Setting(
        "llm.supports_vision", "bool", None,
        "Whether the model can look at images; None finds out.",
        ASKING, optional=True, flag="--llm_supports_vision", short="-lsv", no_flag="--no-llm_supports_vision",
    ),
    Setting(
        "llm.supports_functions", "bool", None,
        "Whether the model can call tools; without, it writes its code in fenced blocks. None finds out.",
        ASKING, optional=True, flag="--llm_supports_functions", short="-lsf",
        no_flag="--no-llm_supports_functions",
    ),
    Setting(
        "llm.model_profile", "str", None,
        "How the model is asked: `full` for large ones, `short`, `minimal` and `tiny` for smaller ones; None "
        "chooses by its name, its size and where it runs.",
        ASKING, optional=True, choices=("full", "short", "minimal", "tiny"), flag="--model_profile",
    ),
    Setting(
        "llm.context_window", "int", None,
        "How many tokens the model can read; None finds out.",
        ASKING, optional=True, minimum=1, flag="--context_window", short="-cw",
    ),
    Setting(
        "llm.max_tokens", "int", None,
        "How many tokens one reply may have; None leaves it to the server.",
        ASKING, optional=True, minimum=1, flag="--max_tokens", short="-x",
    ),
    Setting(
        "llm.max_budget", "float", None,
        "Stop before the request that might bring what the session has cost above this many US dollars. "
        "Of a model whose price is not known, a dollar is 100,000 tokens, unless `llm.max_budget_tokens` is "
        "set.",
        ASKING, optional=True, minimum=0, flag="--max_budget", short="-b",
    ),
    Setting(
        "llm.max_budget_tokens", "int", None,
        "Stop before the request that might bring the tokens of the session above this many, read and "
        "written, whatever they cost.",
        ASKING, optional=True, minimum=0, flag="--max_budget_tokens",
    ),
    Setting(
        "llm.fallback_model", "str", None,
        "Model to ask for the rest of the turn when the first one cannot be reached, is overloaded or has "
        "reached a rate limit, and has not said anything.",
        ASKING, optional=True, flag="--fallback_model", env="INTERPRETER_FALLBACK_MODEL",
    ),
    Setting(
        "llm.api_base", "str", None,
        "Address of the model server, up to and with its `/v1`.",
        ASKING, optional=True, flag="--api_base", short="-ab", env="INTERPRETER_API_BASE",
    ),
    Setting(
        "llm.api_key", "str", None,
        "Key for the model server; None takes the provider's own variable.",
        ASKING, optional=True, flag="--api_key", short="-ak", secret=True,
    ),
    Setting(
        "llm.api_version", "str", None,
        "API version, for the servers that want one.",
        ASKING, optional=True, flag="--api_version", short="-av",
    ),
    Setting(
        "llm.timeout", "float", 600,
        "Longest silence of the model server, in seconds, before it counts as lost.",
        ASKING, minimum=0.001, flag="--llm_timeout",
    ),
    Setting(
        "llm.connect_timeout", "float", 10,
        "How many seconds the model server has to take the connection.",
        ASKING, minimum=0.001,
    ),
    Setting(
        "llm.max_retries", "int", 4,
        "How often a request is sent again after a rate limit, an overload or a lost connection.",
        ASKING, minimum=0, flag="--max_retries",
    ),
    Setting(
        "llm.max_retry_wait", "float", 120,
        "Longest wait, in seconds, that a rate limit may ask for.",
        ASKING, minimum=0,
    ),
    Setting(
        "llm.completions", "callable", None,
        "Your own way to the model: called with `model`, `messages`, `stream` and what else is set, it "
        "yields OpenAI chunk dicts. None asks the server.",
        ASKING, optional=True,
    ),
    Setting(
        "llm.vision_renderer", "callable", None,
        "Turns an image into words for a model without vision; None leaves images out.",
        ASKING, optional=True, later="images are not described yet",
    ),
    # Running code
    Setting(
        "auto_run", "bool", False,
        "Run code without asking first.",
        APPROVAL, flag="--auto_run", short="-y",
    ),
    Setting(
        "mode", "str", None,
        "When a block runs without asking: `ask` never, `auto` always, `auto-in-sandbox` as long as a sandbox holds"
        " it; `plan` runs blocks only in a read-only sandbox without network. Unset, `auto_run` decides. Rules that"
        " deny or ask hold in every mode (docs/policy.md).",
        APPROVAL, optional=True, choices=("ask", "auto-in-sandbox", "auto", "plan"), flag="--mode",
    ),
    Setting(
        "safe_mode", "str", "off",
        "Scan code for dangers before it runs: never, when you say so, or always. What is grave, or cannot be"
        " scanned, is asked about even with `auto_run`.",
        APPROVAL, choices=("off", "ask", "auto"), flag="--safe_mode", short="-safe",
    ),
    Setting(
        "preview", "bool", False,
        "Before you are asked about a block, run it in a copy-on-write view of the workspace without network, and "
        "show what it would change. Linux; Python and shell.",
        APPROVAL, flag="--preview",
    ),
    Setting(
        "redact_secrets", "bool", True,
        "Take keys, tokens and private keys out of what code prints before it goes to the model.",
        APPROVAL, no_flag="--no_redact_secrets",
    ),
    Setting(
        "redact_journal", "bool", True,
        "Take keys, tokens and private keys out of what code prints before it is saved with the conversation.",
        APPROVAL, no_flag="--no_redact_journal",
    ),
    Setting(
        "sandbox", "str", "off",
        "Run the sessions in a sandbox, in which nothing but the workspace can be written (`workspace`) or "
        "nothing at all (`read-only`), homes are hidden and the network is closed; `container:IMAGE` is one of "
        "Docker or Podman. See docs/security.md.",
        APPROVAL, choices=("off", "read-only", "workspace", "container:IMAGE"),
        flag="--sandbox", env="INTERPRETER_SANDBOX",
    ),
    Setting(
        "sandbox_hosts", "list of str", Default(list, "none"),
        "Hosts that a sandbox may reach: `pypi.org`, `*.pypi.org` for all below it, `example.com:8080`.",
        APPROVAL, flag="--sandbox_hosts",
    ),
    Setting(
        "sandbox_env", "list of str", Default(list, "none"),
        "Variables that go into a sandbox although they look like keys.",
        APPROVAL, flag="--sandbox_env",
    ),
    Setting(
        "sandbox_paths", "list of str", Default(list, "none"),
        "More places that a sandbox sees: `~/data` to read, `~/data:rw` to write.",
        APPROVAL, flag="--sandbox_paths",
    ),
    Setting(
        "sandbox_memory", "int", 8192,
        "How many megabytes a process in a sandbox may use; all together, where control groups can be had. None is no "
        "limit.",
        APPROVAL, optional=True, minimum=64,
    ),
    Setting(
        "sandbox_cpu", "int", 3600,
        "How many seconds of processor time a process in a sandbox may use; None is no limit.",
        APPROVAL, optional=True, minimum=1,
    ),
    Setting(
        "sandbox_processes", "int", 1024,
        "How many processes and threads there may be in a sandbox; None is no limit.",
        APPROVAL, optional=True, minimum=16,
    ),
    Setting(
        "sandbox_file_size", "int", 4096,
        "How many megabytes a file may have that is written in a sandbox; None is no limit.",
        APPROVAL, optional=True, minimum=1,
    ),
    Setting(
        "offline", "bool", False,
        "Use nothing beyond this machine but the model server that you named.",
        APPROVAL, flag="--offline", short="-o", env="INTERPRETER_OFFLINE",
    ),
    Setting(
        "workspace", "path", Default(_current_folder, "the current folder"),
        "Folder that the work is about; it stays when code changes the directory.",
        RUNNING, flag="--workspace", env="INTERPRETER_WORKSPACE",
    ),
    Setting(
        "max_output", "int", 2800,
        "How many characters of a block's output the model gets: its beginning and its end, with a note"
        " on the rest.",
        RUNNING, minimum=0, flag="--max_output", short="-xo",
    ),
    Setting(
        "max_blocks", "int", 50,
        "How many blocks may run in one turn; None is no limit.",
        RUNNING, optional=True, minimum=1, flag="--max_blocks",
    ),
    Setting(
        "max_turns", "int", None,
        "How often the model may be asked in answer to one message; None is no limit.",
        RUNNING, optional=True, minimum=1, flag="--max_turns",
    ),
    Setting(
        "block_timeout", "float", None,
        "Stop a block after this many seconds; None lets it run.",
        RUNNING, optional=True, minimum=0.001, flag="--block_timeout", env="INTERPRETER_BLOCK_TIMEOUT",
        headless=300,
    ),
    Setting(
        "computer.python", "path", None,
        "Python that runs the blocks: a path, `in-process` for the one that runs us, with your objects "
        "in reach and no protection from crashes; None takes the active virtual environment, else our "
        "own.",
        RUNNING, optional=True, flag="--python", env="INTERPRETER_PYTHON",
    ),
    Setting(
        "computer.shell", "path", None,
        "Shell that runs the blocks; None takes `$SHELL` if it is bash or zsh, else bash.",
        RUNNING, optional=True, flag="--shell",
    ),
    Setting(
        "computer.shell_rc", "bool", False,
        "Load the shell's own start-up files.",
        RUNNING, flag="--shell_rc",
    ),
    Setting(
        "undo_files", "bool", True,
        "Record what blocks do to the files of the workspace, so that it can be taken back.",
        RUNNING,
    ),
    Setting(
        "undo_max_file_bytes", "int", 64 * 1024 * 1024,
        "The content of a larger file is not covered by undo.",
        RUNNING, minimum=0,
    ),
    Setting(
        "undo_max_bytes", "int", 512 * 1024 * 1024,
        "In a workspace that holds more, undo of files is off.",
        RUNNING, minimum=0,
    ),
    Setting(
        "undo_max_files", "int", 50_000,
        "In a workspace that has more entries, undo of files is off.",
        RUNNING, minimum=0,
    ),
    Setting(
        "computer.undo_snapshots", "int", 20,
        "How many earlier states of a session can be returned to, fewer when memory is short; 0 keeps none, and"
        " a crash then costs all variables.",
        RUNNING, minimum=0,
    ),
    Setting(
        "computer.active_line_detection", "bool", True,
        "Report which line is running.",
        RUNNING, env="INTERPRETER_ACTIVE_LINE_DETECTION",
    ),
    # Prompts
    Setting(
        "system_message", "str", _prompt("system"),
        "What the model is told about its job.",
        PROMPTS, flag="--system_message", short="-sm",
    ),
    Setting(
        "custom_instructions", "str", "",
        "Your own words to the model, after the system message.",
        PROMPTS, flag="--custom_instructions", short="-ci",
    ),
    Setting(
        "llm.execution_instructions", "str or False", _prompt("execution"),
        "How a model without tools is told to write code; empty or False leaves it out.",
        PROMPTS, optional=True,
    ),
    Setting("user_message_template", "str", "{content}", "How your message goes to the model.", PROMPTS),
    Setting(
        "always_apply_user_message_template", "bool", False,
        "Use that template for all of your messages, not only for the last.",
        PROMPTS,
    ),
    Setting(
        "code_output_template", "str", _prompt("code_output"),
        "How output goes to a model without tools.",
        PROMPTS,
    ),
    Setting(
        "empty_code_output_template", "str", _prompt("empty_code_output"),
        "What a model without tools is told when a block printed nothing.",
        PROMPTS,
    ),
    Setting(
        "code_output_sender", "str", "user",
        "In whose name output goes to a model without tools.",
        PROMPTS, choices=("user", "assistant"),
    ),
    Setting(
        "shrink_images", "bool", True,
        "Scale images above 5 MB down before they go to the model.",
        PROMPTS, later="images are sent as they are",
    ),
    # Loop mode
    Setting(
        "loop", "bool", False,
        "Keep asking the model to go on until it says one of the closing sentences.",
        LOOPING, flag="--loop",
    ),
    Setting("loop_message", "str", _prompt("loop"), "What the model is told each time.", LOOPING),
    Setting(
        "loop_breakers", "list of str", Default(lambda: list(_BREAKERS), "; ".join(_BREAKERS)),
        "The sentences that end the loop.",
        LOOPING,
    ),
    # The terminal
    Setting(
        "status_line", "bool", True,
        "Have a line under the prompt with the model, the context used, the cost and the folder.",
        SHOWING, no_flag="--no_status_line",
    ),
    Setting(
        "share_commands", "bool", True,
        "Let the model see what you run at the prompt with `!` and `>>>`.",
        SHOWING,
    ),
    Setting(
        "plain_text_display", "bool", False,
        "Print plain text: no colours, no Markdown, no boxes.",
        SHOWING, flag="--plain", short="-pl",
    ),
    Setting(
        "terminal_images", "str", "auto",
        "How pictures are shown in the terminal; `auto` finds out what it can do.",
        SHOWING, choices=("auto", "kitty", "iterm", "sixel", "blocks", "off"), flag="--terminal_images",
        env="INTERPRETER_TERMINAL_IMAGES",
    ),
    Setting(
        "theme", "str", "auto",
        "Colours for a light or a dark background; `auto` finds out which it is.",
        SHOWING, choices=("auto", "light", "dark"), flag="--theme", env="INTERPRETER_THEME",
    ),
    Setting(
        "highlight_active_line", "bool", True,
        "Mark the line that is running.",
        SHOWING, no_flag="--no_highlight_active_line", short="-nhl",
    ),
    Setting(
        "multi_line", "bool", True,
        'Let a message that begins with `"""` go over several lines.',
        SHOWING, flag="--multi_line", short="-ml",
    ),
    Setting(
        "in_terminal_interface", "bool", False,
        "Whether the terminal holds this interpreter; it sets this itself.",
        SHOWING,
    ),
    Setting("verbose", "bool", False, "Tell more about what happens.", SHOWING, flag="--verbose", short="-v"),
    Setting(
        "debug", "bool", False,
        "Tell everything about what happens.",
        SHOWING, flag="--debug", short="-debug",
    ),
    Setting(
        "speak_messages", "bool", False,
        "Read the model's messages aloud.",
        SHOWING, flag="--speak_messages", short="-sp", later="messages are not spoken yet",
    ),
    # Conversations
    Setting("messages", "list", Default(list, "an empty list"), "The conversation so far.", KEEPING),
    Setting(
        "conversation_history", "bool", True,
        "Save the conversation as it happens; see docs/sessions.md.",
        KEEPING,
    ),
    Setting(
        "conversation_filename", "str", None,
        "File in the folder of conversations that gets the messages as JSON after each turn, besides the journal.",
        KEEPING, optional=True,
    ),
    Setting(
        "conversation_history_path", "path",
        Default(_conversations_folder, "`conversations` in the configuration folder"),
        "Folder that conversations are saved in.",
        KEEPING,
    ),
    # The computer API
    Setting(
        "computer.import_computer_api", "bool", False,
        "Tell the model of the `computer` object that code can use; on at the command line, never for small models.",
        COMPUTER,
    ),
    Setting(
        "computer.import_skills", "bool", False,
        "Have your skills by their names in the Python session.",
        COMPUTER,
    ),
    Setting("computer.save_skills", "bool", True, "Let code save new skills.", COMPUTER),
    Setting(
        "computer.skills_path", "path", None,
        "Folder of your skills; None is `skills` in the configuration folder.",
        COMPUTER, optional=True,
    ),
    Setting(
        "computer.screenshot_size", "int", 1280,
        "Longest side, in pixels, of pictures of the screen: as large as the model sees well.",
        COMPUTER, minimum=200,
    ),
    Setting("computer.emit_images", "bool", True, "Give the model the images that code shows.", COMPUTER),
    Setting(
        "computer.browser_path", "path", None,
        "Browser that `computer.browser` drives: Chrome, Chromium, Edge or Brave, or Playwright's own Firefox; None "
        "finds one.",
        COMPUTER, optional=True,
    ),
    Setting(
        "computer.browser_headless", "bool", None,
        "Run that browser without a window; None does where there is no display or nobody at the keyboard.",
        COMPUTER, optional=True,
    ),
    Setting(
        "computer.search_url", "str", "https://html.duckduckgo.com/html/?q={query}",
        "Page that `computer.browser.search` asks; the words go where `{query}` is.",
        COMPUTER,
    ),
    Setting(
        "computer.system_message", "str", None,
        "What the model is told about the `computer` object; None lists it where `import_computer_api` is on.",
        COMPUTER, optional=True,
    ),
    Setting(
        "computer.max_output", "int", None,
        "As `max_output`, for `computer.run` alone; None is the same.",
        COMPUTER, optional=True, minimum=0,
    ),
    Setting(
        "computer.offline", "bool", None,
        "As `offline`, for the computer API; None is the same.",
        COMPUTER, optional=True,
    ),
    Setting(
        "computer.verbose", "bool", None,
        "As `verbose`, for the computer API; None is the same.",
        COMPUTER, optional=True,
    ),
    Setting(
        "computer.debug", "bool", None,
        "As `debug`, for the computer API; None is the same.",
        COMPUTER, optional=True,
    ),
    Setting(
        "computer.mail_account", "dict", None,
        "Your mail: `imap`, `smtp`, `user` and `password_variable` or `password_command`; None is Mail on macOS. See "
        "docs/mail-and-calendar.md.",
        COMPUTER, optional=True,
    ),
    Setting(
        "computer.calendar_account", "dict", None,
        "Your calendars: `url`, `user` and a password as above for CalDAV, or `path` of `.ics` files; None is Calendar "
        "on macOS.",
        COMPUTER, optional=True,
    ),
    Setting(
        "computer.contacts_account", "dict", None,
        "Your contacts: `url`, `user` and a password as above for CardDAV, or `path` of `.vcf` files; None is Contacts "
        "on macOS.",
        COMPUTER, optional=True,
    ),
    Setting(
        "import_computer_api", "bool", False,
        "The same as `computer.import_computer_api`.",
        COMPUTER, alias_of="computer.import_computer_api",
    ),
    Setting(
        "import_skills", "bool", False,
        "The same as `computer.import_skills`.",
        COMPUTER, alias_of="computer.import_skills",
    ),
    Setting(
        "skills_path", "path", None,
        "The same as `computer.skills_path`.",
        COMPUTER, optional=True, alias_of="computer.skills_path",
    ),
    Setting(
        "sync_computer", "bool", False,
        "The `computer` object of the session and yours are the same.",
        IGNORED, inert="there is one computer, and code in sessions calls it",
    ),
    Setting(
        "os", "bool", False,
        "Let the model see the screen and use mouse and keyboard.",
        COMPUTER, flag="--os", short="-os",
    ),
    Setting(
        "os_max_steps", "int", 200,
        "In OS mode, so many actions on the screen are done for one message; None is no limit.",
        COMPUTER, optional=True, minimum=1, flag="--os_max_steps",
    ),
    Setting(
        "os_max_pictures", "int", 8,
        "In OS mode, so many pictures of the screen go to the model at most, the newest; when there are more, half of "
        "them are left out at once. None is all of them.",
        COMPUTER, optional=True, minimum=1,
    ),
    Setting(
        "os_apps", "list of str", Default(list, "an empty list"),
        "In OS mode, the applications that may be used, such as `mousepad` or `chromium*`; none named is all of them.",
        COMPUTER,
    ),
    # Without effect
    Setting(
        "disable_telemetry", "bool", False,
        "There is no telemetry to turn off.",
        IGNORED, flag="--disable_telemetry", short="-dt", env="DISABLE_TELEMETRY", inert=_NOTHING_SENT,
    ),
    Setting("anonymized_telemetry", "bool", False, "There is no telemetry.", IGNORED, inert=_NOTHING_SENT),
    Setting(
        "contribute_conversation", "bool", False,
        "Conversations are never sent anywhere.",
        IGNORED, flag="--contribute_conversation", inert=_NOTHING_SENT,
    ),
    Setting(
        "computer.api_base", "str", None,
        "There is no hosted API behind the `computer` object.",
        IGNORED, optional=True, inert=_NOTHING_SENT,
    ),
)
# fmt: on

# Names that people use for a setting, from old versions and from pages that were wrong.
MEANT: Mapping[str, str] = MappingProxyType(
    {
        "local": "offline",
        "safe": "safe_mode",
        "plain": "plain_text_display",
        "function_calling_llm": "llm.supports_functions",
        "vision": "llm.supports_vision",
        "budget": "llm.max_budget",
        "timeout": "block_timeout",
        "cwd": "workspace",
    }
)

_BY_NAME = {row.name: row for row in SETTINGS}

GROUPS: Mapping[str, Mapping[str, Setting]] = MappingProxyType(
    {
        group: MappingProxyType({row.leaf: row for row in SETTINGS if row.group == group})
        for group in ("", "llm", "computer")
    }
)


def setting(name: str) -> Setting:
    """The row of a setting, by its dotted name."""
    return _BY_NAME[name]
