"""Every setting, declared once: its type, its default, its flag, its help."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

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

    from interpreter.computer_api import Computer
    from interpreter.config.setting import PathSetting
    from interpreter.llm import Llm
    from interpreter.messages import Message

ASKING = "Model"
RUNNING = "Running code"
APPROVAL = "Approval and safety"
PROMPTS = "Prompts"
LOOPING = "Loop mode"
SHOWING = "Terminal"
KEEPING = "Conversations"
COMPUTER = "The computer API"
SERVING = "Server"
IGNORED = "Ignored (accepted so that old scripts still run)"

# In the order of the docs and of `--help`.
SECTIONS = (ASKING, APPROVAL, RUNNING, PROMPTS, LOOPING, SHOWING, KEEPING, COMPUTER, SERVING, IGNORED)

DATA_STACK = (
    *("pandas", "pyarrow", "openpyxl", "matplotlib", "seaborn", "scipy", "scikit-learn", "statsmodels", "Pillow"),
    *("duckdb", "requests", "beautifulsoup4", "lxml", "pypdf", "python-docx"),
)

_NOTHING_SENT = "nothing is sent anywhere except to the model you chose"

_BREAKERS = (
    "The task is done.",
    "The task is impossible.",
    "Let me know what you'd like to do next.",
    "Please provide more information.",
)


def _prompt(name: str) -> Default:
    return Default(partial(read_prompt, name), f"the text of `prompts/{name}.md`")


def read_prompt(name: str) -> str:
    from pathlib import Path

    file = Path(__file__).parents[1] / "agent" / "prompts" / f"{name}.md"
    return file.read_text(encoding="utf-8").strip()


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
        "When to ask before running a block. `ask`: always. `auto`: never. `auto-in-sandbox`: only if the code would "
        "run outside a sandbox. `plan`: never, but code runs in a read-only sandbox without network. If unset, "
        "`auto_run` decides. Rules that deny or ask apply in every mode (docs/policy.md).",
        APPROVAL, default=None, flag="--mode",
    )
    safe_mode: Literal["off", "ask", "auto"] = setting(
        "Scan code for security problems before it runs: never (`off`), when you choose to (`ask`), or always "
        "(`auto`). Serious findings, and code that cannot be scanned, need your approval even with `auto_run`.",
        APPROVAL, default="off", flag="--safe_mode", short="-safe", wrong_names=("safe",),
    )
    preview: bool = setting(
        "Before asking about a block, do a dry run and show what it would change. The dry run uses a copy-on-write "
        "view of the workspace, without network. Linux only; Python and shell.",
        APPROVAL, default=False, flag="--preview",
    )
    card_diff: Literal["off", "show", "apply"] = setting(
        "Show in the question about a block what it would change, if all it does is to write files of the workspace. "
        "That takes a dry run of at most 0.3 seconds (Linux, Python and shell). `apply`: the dry run continues while "
        "you read, and a yes applies its result instead of running the block again. `off`: no dry run.",
        APPROVAL, default="show", flag="--card_diff",
    )
    diff_file: str = setting(
        "At the end of a run without a chat, write what the session changed as a diff to this file.",
        KEEPING, default="", flag="--diff",
    )
    redact_secrets: bool = setting(
        "Redact API keys, tokens and private keys in output before sending it to the model.",
        APPROVAL, default=True, no_flag="--no_redact_secrets",
    )
    redact_journal: bool = setting(
        "Redact API keys, tokens and private keys in output before saving it with the conversation.",
        APPROVAL, default=True, no_flag="--no_redact_journal",
    )
    sandbox: str = setting(
        "Run code in a sandbox: no network, home folders hidden. With `workspace`, code can write only to the "
        "workspace; with `read-only`, it cannot write at all. `container:IMAGE` uses Docker or Podman. See "
        "docs/security.md.",
        APPROVAL, default="off", choices=("off", "read-only", "workspace", "container:IMAGE"), flag="--sandbox",
        env="INTERPRETER_SANDBOX",
    )
    sandbox_hosts: list[str] = setting(
        "Hosts that sandboxed code can reach, such as `pypi.org`, `*.pypi.org` (every subdomain) or "
        "`example.com:8080`.",
        APPROVAL, default=Default(list, "none"), flag="--sandbox_hosts",
    )
    sandbox_env: list[str] = setting(
        "Environment variables to pass into the sandbox even though they look like secrets.",
        APPROVAL, default=Default(list, "none"), flag="--sandbox_env",
    )
    sandbox_paths: list[str] = setting(
        "Extra paths that the sandbox can access: `~/data` to read, `~/data:rw` to read and write.",
        APPROVAL, default=Default(list, "none"), flag="--sandbox_paths",
    )
    sandbox_unix_sockets: bool = setting(
        "Let sandboxed code use Unix sockets, for databases, tmux and so on. It can then reach every program on this "
        "machine whose socket file it can see.",
        APPROVAL, default=False,
    )
    sandbox_memory: int | None = setting(
        "Memory limit in the sandbox, in megabytes: for the whole sandbox where control groups are available, "
        "otherwise per process. None: no limit.",
        APPROVAL, default=8192, minimum=64,
    )
    sandbox_cpu: int | None = setting(
        "CPU time limit of each process in the sandbox, in seconds. None: no limit.",
        APPROVAL, default=3600, minimum=1,
    )
    sandbox_processes: int | None = setting(
        "Maximum number of processes and threads in the sandbox. None: no limit.",
        APPROVAL, default=1024, minimum=16,
    )
    sandbox_file_size: int | None = setting(
        "Maximum size of a file written in the sandbox, in megabytes. None: no limit.",
        APPROVAL, default=4096, minimum=1,
    )
    offline: bool = setting(
        "Don't contact anything outside this machine except the model server you named.",
        APPROVAL, default=False, flag="--offline", short="-o", env="INTERPRETER_OFFLINE", old_names=("local",),
    )
    strict_settings: bool = setting(
        "Raise an error when code sets an attribute that is not a setting. Otherwise, only names similar to a setting "
        "give a warning.",
        RUNNING, default=False, env="INTERPRETER_STRICT_SETTINGS",
    )
    stream_all: bool = setting(
        "Make `chat(stream=True)`, `computer.run(stream=True)` and `llm.run()` also stream the chunk types that 0.4.3 "
        "did not have: `status`, `reasoning`, `decision`, `input_request` and `tool_call`.",
        RUNNING, default=False,
    )
    workspace: PathSetting[str] = setting(
        "The folder to work in. It stays the same when code changes its working directory.",
        RUNNING, default=Default(os.getcwd, "the current folder"), flag="--workspace",
        env="INTERPRETER_WORKSPACE", wrong_names=("cwd",),
    )
    max_output: int = setting(
        "Maximum number of characters of a block's output to send to the model. Of longer output, it gets the "
        "beginning, the end and a note.",
        RUNNING, default=2800, minimum=0, flag="--max_output", short="-xo", old_names=("llm.max_output",),
    )
    max_blocks: int | None = setting(
        "Maximum number of code blocks to run in one turn. None: no limit.",
        RUNNING, default=50, minimum=1, flag="--max_blocks",
    )
    max_turns: int | None = setting(
        "Maximum number of requests to the model per message. None: no limit.",
        RUNNING, default=None, minimum=1, flag="--max_turns",
    )
    question_timeout: float | None = setting(
        "Seconds to wait for an answer to a question before treating it as a no. None: wait as long as a front end "
        "that can answer is connected.",
        APPROVAL, default=None, minimum=0,
    )
    check_answers: bool = setting(
        "After an answer, name the numbers, dates and files in it that occur in no output, file or message. Only in "
        "turns that ran code or read a file. A small model is asked once to compute them.",
        RUNNING, default=True, no_flag="--no_check_answers",
    )
    block_timeout: float | None = setting(
        "Stop a block after this many seconds. None: no limit.",
        RUNNING, default=None, minimum=0.001, flag="--block_timeout", env="INTERPRETER_BLOCK_TIMEOUT", headless=300,
        wrong_names=("timeout",),
    )
    undo_files: bool = setting(
        "Record what blocks do to files in the workspace, so that you can undo it.",
        RUNNING, default=True,
    )
    undo_max_file_bytes: int = setting(
        "Undo doesn't copy files larger than this many bytes, except before a preview is applied to them.",
        RUNNING, default=64 * 1024 * 1024, minimum=0,
    )
    undo_max_bytes: int = setting(
        "Undo copies at most this many bytes of the workspace: small files and text files first, then recent ones.",
        RUNNING, default=512 * 1024 * 1024, minimum=0,
    )
    undo_max_files: int = setting(
        "Undo copies at most this many files of the workspace. It ignores entries beyond five times that number.",
        RUNNING, default=50_000, minimum=0,
    )
    system_message: str = setting(
        "The system prompt.",
        PROMPTS, default=_prompt("system"), flag="--system_message", short="-sm",
    )
    custom_instructions: str = setting(
        "Your own instructions for the model, added after the system message.",
        PROMPTS, default="", flag="--custom_instructions", short="-ci",
    )
    user_message_template: str = setting("Template for your message to the model.", PROMPTS, default="{content}")
    always_apply_user_message_template: bool = setting(
        "Apply that template to all of your messages, not only the last one.",
        PROMPTS, default=False,
    )
    code_output_template: str = setting(
        "Template for a block's output, for models without tool calls.",
        PROMPTS, default=_prompt("code_output"),
    )
    empty_code_output_template: str = setting(
        "What to send when a block printed nothing, for models without tool calls.",
        PROMPTS, default=_prompt("empty_code_output"),
    )
    code_output_sender: Literal["user", "assistant"] = setting(
        "The role that output is sent with, for models without tool calls.",
        PROMPTS, default="user",
    )
    shrink_images: bool = setting(
        "Scale down images larger than 5 MB before sending them to the model.",
        PROMPTS, default=True, inert="images are sent as they are",
    )
    loop: bool = setting(
        "Keep prompting the model to continue until it says one of the sentences in `loop_breakers`.",
        LOOPING, default=False, flag="--loop",
    )
    loop_message: str = setting("The message that prompts the model to continue.", LOOPING, default=_prompt("loop"))
    loop_breakers: list[str] = setting(
        "The sentences that end the loop.",
        LOOPING, default=Default(lambda: list(_BREAKERS), "; ".join(_BREAKERS)),
    )
    status_line: bool = setting(
        "Show a status line under the prompt with the model, the context used, the cost and the folder.",
        SHOWING, default=True, no_flag="--no_status_line",
    )
    editing_mode: Literal["emacs", "vi"] = setting(
        "Key bindings at the prompt: `emacs` or `vi`.",
        SHOWING, default="emacs", flag="--editing_mode",
    )
    notify_after: int = setting(
        "Ring the bell and set the window title when a turn that took this many seconds ends or asks you something; "
        "0 turns it off.",
        SHOWING, default=10, flag="--notify_after",
    )
    notify_by: Literal["bell", "desktop"] = setting(
        "`desktop` shows a notification as well: through the terminal if it can (kitty, iTerm2, WezTerm, Ghostty, "
        "foot, rxvt), else through the system (`notify-send` on Linux).",
        SHOWING, default="bell", flag="--notify_by",
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
        "How to show images in the terminal. `auto` detects what the terminal supports.",
        SHOWING, default="auto", flag="--terminal_images", env="INTERPRETER_TERMINAL_IMAGES",
    )
    theme: Literal["auto", "light", "dark"] = setting(
        "Colours for a light or dark background. `auto` detects it.",
        SHOWING, default="auto", flag="--theme", env="INTERPRETER_THEME",
    )
    highlight_active_line: bool = setting(
        "Highlight the line that is running.",
        SHOWING, default=True, short="-nhl", no_flag="--no_highlight_active_line",
    )
    multi_line: bool = setting(
        'Let a message that starts with `"""` span several lines.',
        SHOWING, default=True, flag="--multi_line", short="-ml",
    )
    in_terminal_interface: bool = setting(
        "Whether this interpreter runs in the terminal. Set by the terminal itself.",
        SHOWING, default=False,
    )
    verbose: bool = setting(
        "Print more detail.",
        SHOWING, default=False, flag="--verbose", short="-v", old_names=("debug_mode",),
    )
    debug: bool = setting(
        "Print everything, including tracebacks.",
        SHOWING, default=False, flag="--debug", short="-debug",
    )
    speak_messages: bool = setting(
        "Read the model's messages aloud.",
        SHOWING, default=False, flag="--speak_messages", short="-sp", inert="messages are not spoken yet",
    )
    conversation_history: bool = setting(
        "Save the conversation as it happens; see docs/sessions.md.",
        KEEPING, default=True,
    )
    conversation_filename: str | None = setting(
        "Name of the JSON file, next to the journal, that the messages are saved to after each turn. None: named "
        "after the first words and the time, as in 0.4.3.",
        KEEPING, default=None,
    )
    conversation_history_path: PathSetting[str] = setting(
        "Folder to save conversations in.",
        KEEPING,
        default=Default(lambda: str(our_folder() / "conversations"), "`conversations` in the configuration folder"),
    )
    save_variables: bool = setting(
        "Save the variables of Python and the shell with the conversation, when you are idle and when you leave, so "
        "that resuming it can restore them.",
        KEEPING, default=True, no_flag="--no_save_variables",
    )
    save_variables_bytes: int = setting(
        "How many bytes of variables are saved per language; what does not fit is left out and named.",
        KEEPING, default=100_000_000, minimum=0,
    )
    save_variables_seconds: float = setting(
        "How many seconds saving variables in the background may take.",
        KEEPING, default=20, minimum=0.1,
    )
    save_variables_exit_seconds: float = setting(
        "How many seconds it may take when you leave; after that, the ones saved last are kept.",
        KEEPING, default=1.5, minimum=0,
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
        "Sync the `computer` object between your process and the session.",
        IGNORED, default=False, inert="code in a session already calls the same `computer`",
    )
    mcp: bool = setting(
        "Offer the tools of your MCP servers to code.",
        COMPUTER, default=True, flag="--mcp_servers", no_flag="--no_mcp_servers",
    )
    mcp_prompt_tokens: int = setting(
        "Tokens of the system message that signatures of MCP tools may take up. Servers that don't fit are searched "
        "with `tools.search`.",
        COMPUTER, default=1500, minimum=0,
    )
    agents: bool = setting(
        "Offer sub-agents to the model as a tool. Code can start them with `agent(...)` in any case.",
        COMPUTER, default=False, flag="--agents",
    )
    agents_depth: int = setting("How deep sub-agents may start sub-agents.", COMPUTER, default=2, minimum=0)
    agents_total: int = setting("Maximum number of sub-agents in a session.", COMPUTER, default=100, minimum=0)
    agents_at_once: int = setting(
        "Maximum number of sub-agents of one agent that run at the same time. The others wait.",
        COMPUTER, default=8, minimum=1,
    )
    agents_budget: float | None = setting(
        "Dollars that all sub-agents of a session may spend. None: only `llm.max_budget` limits them.",
        COMPUTER, default=None, minimum=0,
    )
    agents_tokens: int | None = setting(
        "Tokens that all sub-agents of a session may use. None: no limit.", COMPUTER, default=None, minimum=0,
    )
    agents_seconds: float = setting(
        "Seconds after which a sub-agent is stopped, with those that it started.", COMPUTER, default=1800, minimum=1,
    )
    agents_memory: int = setting(
        "Megabytes that the code of one sub-agent may use. None is started while less than that is free.",
        COMPUTER, default=1024, minimum=64,
    )
    mcp_native: list[str] = setting(
        "MCP servers whose tools the model can also call itself. Each tool adds its schema to every request. Only "
        "tools of servers that were used before are known.",
        COMPUTER, default=[],
    )
    os: bool = setting(
        "Let the model see the screen and use mouse and keyboard.",
        COMPUTER, default=False, flag="--os", short="-os",
    )
    os_max_steps: int | None = setting(
        "Maximum number of screen actions per message in OS mode. None: no limit.",
        COMPUTER, default=200, minimum=1, flag="--os_max_steps",
    )
    os_max_pictures: int | None = setting(
        "Maximum number of screenshots to send to the model in OS mode. Above it, the older half is dropped at once. "
        "None: send all.",
        COMPUTER, default=8, minimum=1,
    )
    os_apps: list[str] = setting(
        "The applications that the model can use in OS mode, such as `mousepad` or `chromium*`. Empty: all of them.",
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

    server_host: str = setting(
        "The address that `--serve` listens on. Anything but this machine's own address needs TLS, see docs/server.md.",
        SERVING, default="127.0.0.1", flag="--host", env="INTERPRETER_HOST",
    )
    server_port: int = setting(
        "The port that `--serve` listens on; 0 picks a free one.",
        SERVING, default=8000, minimum=0, flag="--port", env="INTERPRETER_PORT",
    )
    server_names: list[str] = setting(
        "Other names under which clients reach the server, such as `interpreter.example.com`. Requests with any other "
        "Host header are refused.",
        SERVING, default=Default(list, "none"), flag="--server_names",
    )
    server_cert: PathSetting[str | None] = setting(
        "The file with the TLS certificate of the server.", SERVING, default=None, flag="--server_cert",
    )
    server_key: PathSetting[str | None] = setting(
        "The file with the private key of that certificate.", SERVING, default=None, flag="--server_key",
    )
    server_without_tls: bool = setting(
        "Listen beyond this machine without TLS, for example behind a proxy that has it.",
        SERVING, default=False, flag="--server_without_tls",
    )
    server_rate: int = setting(
        "How many requests a user of the server can make per minute.", SERVING, default=1200, minimum=1,
    )
    server_max_body: int = setting(
        "How many bytes a request to the server can have, except for uploads.",
        SERVING, default=10_000_000, minimum=1000,
    )
    server_max_upload: int = setting(
        "How many bytes a file can have that is uploaded to the server.",
        SERVING, default=1_000_000_000, minimum=1000,
    )
    server_max_sessions: int = setting(
        "How many sessions can be live on the server at once.", SERVING, default=200, minimum=1,
    )
    server_free_memory: int = setting(
        "How many megabytes of memory must stay free when the server starts a session.",
        SERVING, default=300, minimum=0,
    )
    server_idle_minutes: float = setting(
        "After how many idle minutes the server ends the runtimes of a session. Its variables are saved, and the next "
        "use brings them back.",
        SERVING, default=30, minimum=0.01,
    )


@settings_class("llm")
class LlmSettings(SettingsGroup):
    """The settings of the model, `llm.*`."""

    model: str = setting(
        "The model to use, with a provider prefix if it needs one: `gpt-4o`, `ollama/llama3.1`, `openai/my-model`.",
        ASKING, default="gpt-4o", flag="--model", short="-m", env="INTERPRETER_MODEL",
    )
    temperature: float | None = setting(
        "Sampling temperature. 0 is the most predictable; None uses the server's default.",
        ASKING, default=0, minimum=0, flag="--temperature", short="-t",
    )
    supports_vision: bool | None = setting(
        "Whether the model accepts images. None: detect it.",
        ASKING, default=None, flag="--llm_supports_vision", short="-lsv", no_flag="--no-llm_supports_vision",
        old_names=("vision",),
    )
    supports_functions: bool | None = setting(
        "Whether the model supports tool calls. If not, it writes code in fenced blocks. None: detect it.",
        ASKING, default=None, flag="--llm_supports_functions", short="-lsf", no_flag="--no-llm_supports_functions",
        old_names=("function_calling_llm",),
    )
    model_profile: Literal["full", "short", "minimal", "tiny"] | None = setting(
        "How detailed the prompt is: `full` for large models; `short`, `minimal` or `tiny` for smaller ones. "
        "None: choose by the model's name, its size and where it runs.",
        ASKING, default=None, flag="--model_profile",
    )
    context_window: int | None = setting(
        "The model's context window, in tokens. None: detect it.",
        ASKING, default=None, minimum=1, flag="--context_window", short="-cw",
    )
    max_tokens: int | None = setting(
        "Maximum number of tokens in a reply. None: the server's default.",
        ASKING, default=None, minimum=1, flag="--max_tokens", short="-x",
    )
    max_budget: float | None = setting(
        "Stop before a request that could take the cost of the session above this many US dollars. If the model's "
        "price is unknown, 100,000 tokens count as a dollar, unless `llm.max_budget_tokens` is set.",
        ASKING, default=None, minimum=0, flag="--max_budget", short="-b", wrong_names=("budget",),
    )
    max_budget_tokens: int | None = setting(
        "Stop before a request that could take the session above this many tokens, input and output together.",
        ASKING, default=None, minimum=0, flag="--max_budget_tokens",
    )
    fallback_model: str | None = setting(
        "Model to use for the rest of the turn if the main one is unreachable, overloaded or rate limited before it "
        "has replied.",
        ASKING, default=None, flag="--fallback_model", env="INTERPRETER_FALLBACK_MODEL",
    )
    api_base: str | None = setting(
        "Base URL of the model server, including `/v1`.",
        ASKING, default=None, flag="--api_base", short="-ab", env="INTERPRETER_API_BASE",
    )
    api_key: str | None = setting(
        "API key for the model server. None: read the provider's environment variable.",
        ASKING, default=None, flag="--api_key", short="-ak", secret=True,
    )
    api_version: str | None = setting(
        "API version, for servers that require one.",
        ASKING, default=None, flag="--api_version", short="-av",
    )
    timeout: float = setting(
        "Give up on the model server after this many seconds without text or a tool call. Keep-alive bytes don't "
        "count.",
        ASKING, default=600, minimum=0.001, flag="--llm_timeout",
    )
    reply_timeout: float = setting(
        "Maximum duration of one reply, in seconds.",
        ASKING, default=21600, minimum=0.001,
    )
    connect_timeout: float = setting(
        "Seconds to wait for a connection to the model server.",
        ASKING, default=10, minimum=0.001,
    )
    max_retries: int = setting(
        "How many times to retry a request after a rate limit, an overload or a lost connection.",
        ASKING, default=4, minimum=0, flag="--max_retries",
    )
    max_retry_wait: float = setting(
        "Longest wait to accept from a rate limit, in seconds.",
        ASKING, default=120, minimum=0,
    )
    completions: Callable[..., Any] | None = setting(
        "A function of yours to call instead of the model server. It gets `model`, `messages`, `stream` and the other "
        "settings in use, and yields OpenAI chunk dicts. None: use the server.",
        ASKING, default=None,
    )
    vision_renderer: Callable[..., Any] | None = setting(
        "A function that describes an image in text, for models without vision. None: leave images out.",
        ASKING, default=None, inert="images are not described yet",
    )
    execution_instructions: str | Literal[False] | None = setting(
        "How to write code: instructions for models without tool calls. Empty or False: none.",
        PROMPTS, default=_prompt("execution"),
    )


@settings_class("computer")
class ComputerSettings(SettingsGroup):
    """The settings of the computer, `computer.*`."""

    python: PathSetting[str | None] = setting(
        "The Python that runs code: a program, the folder of a virtual environment, `conda:NAME`, `session` for "
        "a session environment, or `in-process` to run it inside this process, where it can use your objects but a "
        "crash ends everything. None: the active virtual environment, otherwise the project's if you accepted it, "
        "otherwise a session environment. See docs/environments.md.",
        RUNNING, default=None, flag="--python", env="INTERPRETER_PYTHON",
    )
    environment: Literal["workspace", "shared"] = setting(
        "The session environment, which the packages that code installs go to: one for each `workspace`, or one "
        "`shared` by all.",
        RUNNING, default="workspace",
    )
    install_missing: Literal["ask", "known", "never"] = setting(
        "What to do if a package that a block imports is missing. `ask`: offer to install it; if code runs without "
        "asking, or in a script, install it if it is well known. `known`: install well-known ones without asking. "
        "`never`: don't install any. See docs/environments.md.",
        RUNNING, default="ask", flag="--install_missing", old_names=("computer.offer_packages",),
    )
    data_stack: list[str] = setting(
        "The packages that all session environments share once they are installed: `%env stack update` in a chat. "
        "Empty: never offer them. See docs/environments.md.",
        RUNNING, default=Default(lambda: list(DATA_STACK), " ".join(DATA_STACK)), env="INTERPRETER_DATA_STACK",
    )
    preload: list[str] = setting(
        "Modules to import once for all Python sessions, such as `numpy` and `pandas`. Each new session is a copy of "
        "a process that has them. Not in a sandbox. See docs/languages-data.md.",
        RUNNING, default=Default(list, "none"),
    )
    shell: PathSetting[str | None] = setting(
        "The shell that runs code. None: `$SHELL` if it is bash or zsh, otherwise bash.",
        RUNNING, default=None, flag="--shell",
    )
    shell_rc: bool = setting("Load your shell's startup files.", RUNNING, default=False, flag="--shell_rc")
    sql: str | None = setting(
        "The database of SQL blocks: `duckdb:///file.db`, `sqlite:///file.db`, or any address that SQLAlchemy knows. "
        "None: DuckDB in memory where it is installed, otherwise SQLite.",
        RUNNING, default=None, env="INTERPRETER_SQL", secret=True,
    )
    max_shared: int = setting(
        "Maximum number of characters, as JSON, of a value that `share()` gives to other languages. See "
        "docs/sharing-values.md.",
        RUNNING, default=10_000_000, minimum=0,
    )
    remote: str | None = setting(
        "Another machine to work on, such as `ssh://user@host/folder`. Code runs there, on the files there; approval, "
        "rules, journal and costs stay here. None: this machine.",
        RUNNING, default=None, flag="--remote", env="INTERPRETER_REMOTE", secret=True,
    )
    remotes: dict[str, Any] | None = setting(
        "More machines, by name, for blocks in languages such as `python@gpu`: `{gpu: ssh://host/folder}`.",
        RUNNING, default=None, secret=True,
    )
    remote_keep: int = setting(
        "How many seconds the other machine keeps the runtimes after the connection is lost.",
        RUNNING, default=3600, minimum=1,
    )
    remote_ssh: str = setting(
        "The ssh command for `remote`, with its options: `ssh -J jump.example.org`.",
        RUNNING, default="ssh",
    )
    undo_snapshots: int = setting(
        "How many earlier states of the variables to keep, fewer when memory is low. 0: none, so a crash loses all "
        "variables.",
        RUNNING, default=20, minimum=0,
    )
    active_line_detection: bool = setting(
        "Report which line is running.",
        RUNNING, default=True, env="INTERPRETER_ACTIVE_LINE_DETECTION",
    )
    table_rows: int = setting(
        "Maximum number of rows to save when code shows a pandas or polars table. Longer tables leave out the middle.",
        RUNNING, default=1000, minimum=10,
    )
    import_computer_api: bool = setting(
        "Tell the model about the `computer` object. On by default at the command line; never for small models.",
        COMPUTER, default=False,
    )
    import_skills: bool = setting("Make your skills available by name in the Python session.", COMPUTER, default=False)
    save_skills: bool = setting("Let code save new skills.", COMPUTER, default=True)
    skills_path: PathSetting[str | None] = setting(
        "Folder of your skills; None is `skills` in the configuration folder.",
        COMPUTER, default=None,
    )
    screenshot_size: int = setting(
        "Longest side of a screenshot, in pixels. Choose the largest size that the model sees well.",
        COMPUTER, default=1280, minimum=200,
    )
    emit_images: bool = setting("Send images that code shows to the model.", COMPUTER, default=True)
    browser_path: PathSetting[str | None] = setting(
        "The browser for `computer.browser`: Chrome, Chromium, Edge, Brave or Playwright's Firefox. None: find one.",
        COMPUTER, default=None,
    )
    browser_headless: bool | None = setting(
        "Run the browser without a window. None: only if there is no display or no interactive user.",
        COMPUTER, default=None,
    )
    browser_wait: float = setting(
        "How many seconds `computer.browser` waits for an element to appear.",
        COMPUTER, default=10.0, minimum=0,
    )
    browser_changes: int = setting(
        "How many characters of what an action changed on a page its report has; 0 leaves it out.",
        COMPUTER, default=1500, minimum=0,
    )
    browser_secrets: dict[str, Any] | None = setting(
        "Secrets that `computer.browser.fill` fills in for `<secret:NAME>`, by name: `hosts`, and `password_variable` "
        "or `password_command`. See docs/browser.md.",
        COMPUTER, default=None,
    )
    search_url: str = setting(
        "The search page for `computer.browser.search`. `{query}` stands for the search terms.",
        COMPUTER, default="https://html.duckduckgo.com/html/?q={query}",
    )
    system_message: str | None = setting(
        "How the `computer` object is described to the model. None: a list of its methods, if `import_computer_api` "
        "is on.",
        COMPUTER, default=None,
    )
    max_output: int | None = setting(
        "Maximum number of characters of output that `computer.run` returns, from the beginning and the end. None: "
        "all of it.",
        COMPUTER, default=None, minimum=0,
    )
    offline: bool | None = setting("`offline` for the computer API only. None: as `offline`.", COMPUTER, default=None)
    verbose: bool | None = setting("`verbose` for the computer API only. None: as `verbose`.", COMPUTER, default=None)
    debug: bool | None = setting("`debug` for the computer API only. None: as `debug`.", COMPUTER, default=None)
    mail_account: dict[str, Any] | None = setting(
        "Your mail account: `imap`, `smtp`, `user`, and `password_variable` or `password_command`. None: the Mail app "
        "on macOS. See docs/mail-and-calendar.md.",
        COMPUTER, default=None,
    )
    calendar_account: dict[str, Any] | None = setting(
        "Your calendars: `url`, `user` and a password (as for mail) for CalDAV, or the `path` of `.ics` files. None: "
        "the Calendar app on macOS.",
        COMPUTER, default=None,
    )
    contacts_account: dict[str, Any] | None = setting(
        "Your contacts: `url`, `user` and a password (as for mail) for CardDAV, or the `path` of `.vcf` files. None: "
        "the Contacts app on macOS.",
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
