"""`ask` in code: questions about tables, in the user's forms, once each, within limits, and continued after a stop."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conversation import Chatting, chatting
from interpreter import OpenInterpreter
from model_server import ModelServer, error, stall, text, usage

__all__ = ["chatting"]
pytestmark = pytest.mark.usefixtures("no_strays")

Asking = Callable[..., tuple[Callable[[str], str], ModelServer, OpenInterpreter]]


@pytest.fixture
def coding(chatting: Chatting) -> Iterator[Asking]:
    """`coding(answer, setting=value)` returns what runs Python, the server, and the interpreter."""

    def start(answer: Any, **settings: Any) -> tuple[Callable[[str], str], ModelServer, OpenInterpreter]:
        interpreter, server = chatting(answer, **settings)
        server.repeat = True
        interpreter.llm.model = "gpt-4o"

        def run(code: str) -> str:
            messages = interpreter.computer.run("python", code)
            return "".join(str(message["content"]) for message in messages if message["type"] == "console")

        return run, server, interpreter

    return start


def prompt_in(body: dict[str, Any]) -> str:
    content = body["messages"][1]["content"]
    return content if isinstance(content, str) else str(content[0]["text"])


def animal(body: dict[str, Any]) -> Any:
    return text("Cats." if "cat" in prompt_in(body) else "dogs").then(usage(30, 2))


def posts(server: ModelServer) -> list[dict[str, Any]]:
    return [request.body for request in server.requests if request.method == "POST"]


# -- the user's forms ----------------------------------------------------------------------------------------------


def test_a_list_gives_a_list_and_a_missing_value_stays_missing(coding: Asking) -> None:
    run, server, _ = coding(animal)
    assert "['cats', None, 'dogs']" in run(
        "print(ask.map('Which animal?', ['a cat', None, 'a dog'], schema=['cats', 'dogs']))"
    )
    assert sorted(map(prompt_in, posts(server))) == ["Which animal?\n\na cat", "Which animal?\n\na dog"]


def test_a_series_gives_a_series_with_its_index_and_a_template_takes_columns(coding: Asking) -> None:
    run, server, _ = coding(animal)
    printed = run(
        "import pandas as pd\n"
        "df = pd.DataFrame({'title': ['cat food', 'dog'], 'year': [1999, 2001]}, index=['a', 'b'])\n"
        "df['topic'] = ask.map('What is {title} of {year}?', df, schema=['cats', 'dogs'])\n"
        "print(df.topic.to_dict(), ask.map('And?', df.title).to_dict())"
    )
    assert "{'a': 'cats', 'b': 'dogs'} {'a': 'Cats.', 'b': 'dogs'}" in printed
    assert {"What is cat food of 1999?", "What is dog of 2001?"} <= set(map(prompt_in, posts(server)))


def test_polars_and_lists_of_dicts(coding: Asking) -> None:
    run, server, _ = coding(animal)
    printed = run(
        "import polars as pl\n"
        "made = ask.map('Which?', pl.Series('pet', ['cat', 'dog']))\n"
        "print(type(made).__module__.split('.')[0], made.name, made.to_list())\n"
        "print(ask.map('{name}, {age}?', [{'name': 'cat', 'age': 3}]))"
    )
    assert "polars pet ['Cats.', 'dogs']" in printed and "['Cats.']" in printed
    assert "cat, 3?" in map(prompt_in, posts(server))


@pytest.mark.parametrize(
    ("schema", "answer", "value"),
    [
        ("int", "42", "42"),
        ("float", "4", "4.0"),
        ("bool", "True", "True"),
        ("Size", "LARGE", "<Size.LARGE: 1>"),
        ("Literal['a', 'b']", "`B`", "'b'"),
        ("list[int]", "```json\n[1, 2]\n```", "[1, 2]"),
        ("Topic", '{"name": "x", "weight": 2}', "Topic(name='x', weight=2, tags=[])"),
        ("dict[str, int]", '{"a": 1}', "{'a': 1}"),
        ("int | None", "null", "None"),
        ("Model", '{"name": "x", "weight": 2.5}', "Model(name='x', weight=2.5)"),
        ("{'type': 'object', 'required': ['a']}", '{"a": [1]}', "{'a': [1]}"),
    ],
)
def test_values_have_the_type_that_was_asked_for(coding: Asking, schema: str, answer: str, value: str) -> None:
    run, _, _ = coding(text(answer))
    classes = (
        "import enum, dataclasses, pydantic\nfrom typing import Literal\n"
        "class Size(enum.Enum):\n    LARGE = 1\n    SMALL = 2\n"
        "@dataclasses.dataclass\nclass Topic:\n    name: str\n    weight: int\n"
        "    tags: list[str] = dataclasses.field(default_factory=list)\n"
        "class Model(pydantic.BaseModel):\n    name: str\n    weight: float\n"
    )
    assert run(f"{classes}(value,) = ask.map('What?', ['x'], schema={schema})\nprint('value:', repr(value))").endswith(
        f"value: {value}\n"
    )


def test_images_are_values(coding: Asking) -> None:
    run, server, _ = coding(text("red"))
    run(
        "from PIL import Image\nImage.new('RGB', (2, 2), 'red').save('a.png')\nfrom pathlib import Path\n"
        "print(ask.map('Colour of {}?', [Image.new('RGB', (2, 2), 'red'), Path('a.png'), open('a.png', 'rb').read()]))"
    )
    contents = [message["content"] for body in posts(server) for message in body["messages"]]
    assert any(isinstance(each, list) and each[-1]["type"] == "image_url" for each in contents)
    assert "Colour of (image 1)?" in contents


def test_ask_answers_a_question_about_a_table_and_gives_one_value(coding: Asking) -> None:
    run, server, _ = coding(text("7"))
    assert "8" in run("import pandas as pd\nprint(ask('How many?', pd.DataFrame({'n': [7]}), schema=int) + 1)")
    assert prompt_in(posts(server)[0]) == "How many?\n\n,n\n0,7"


def test_it_is_awaited_where_an_event_loop_runs(coding: Asking) -> None:
    run, _, _ = coding(animal)
    printed = run("import asyncio\nprint(await asyncio.gather(ask('cat?'), ask.map('Which?', ['dog'])))")
    assert "['Cats.', ['dogs']]" in printed


def test_a_variable_of_that_name_wins_and_the_name_is_not_listed(coding: Asking) -> None:
    run, _, interpreter = coding(animal)
    assert "<ask of Open Interpreter>" in run("print(ask)")
    assert interpreter.computer.variables() == {}
    assert "mine" in run("ask = 'mine'\nprint(ask)")
    assert "['dogs']" in run("del ask\nprint(ask.map('Which?', ['dog']))")


def test_it_works_in_the_callers_own_process(coding: Asking) -> None:
    run, _, interpreter = coding(animal)
    interpreter.computer.python = "in-process"
    assert "['cats']" in run("print(ask.map('Which?', ['cat'], schema=['cats', 'dogs']))")


# -- answers and failures ------------------------------------------------------------------------------------------


def test_a_wrong_answer_is_asked_about_once_more_and_then_a_failure(coding: Asking) -> None:
    def answer(body: dict[str, Any]) -> Any:
        return text("7" if "wrong" in prompt_in(body) and "good" in prompt_in(body) else "seven")

    run, server, _ = coding(answer)
    printed = run(
        "values = ask.map('How many?', ['good', 'bad'], schema=int)\nprint(values[0] + 1, ask.failed(values[1]), values[1])"
    )
    assert "8 True" in printed and "1 failed" in printed
    assert len(posts(server)) == 4


def test_a_row_that_fails_is_a_value_and_the_rest_has_answers(coding: Asking) -> None:
    def answer(body: dict[str, Any]) -> Any:
        return error(400, "no such thing") if "cat" in prompt_in(body) else animal(body)

    run, _, _ = coding(answer)
    printed = run("v = ask.map('Which?', ['cat', 'dog'])\nprint(v[1], type(v[0]).__name__)\nprint(repr(str(v[0])))")
    assert "dogs ComputerError" in printed and "no such thing" in printed


def test_a_wrong_key_ends_the_job_instead_of_failing_row_by_row(coding: Asking) -> None:
    run, server, _ = coding(error(401, {"error": {"message": "bad key", "code": "invalid_api_key"}}))
    assert "rejected the key" in run("ask.map('Which?', list(range(200)), at_once=1)")
    assert len(posts(server)) < 5


def test_the_same_question_is_sent_once_and_known_ones_not_at_all(coding: Asking) -> None:
    run, server, _ = coding(animal)
    run("ask.map('Which?', ['cat', 'cat', 'dog'])")
    assert len(posts(server)) == 2
    run("ask.map('Which?', ['cat', 'dog', 'bird'])")
    assert len(posts(server)) == 3
    run("ask.map('Which?', ['cat'], cache=False)\nask.map('Which?', ['cat'], model='gpt-4o-mini')")
    assert len(posts(server)) == 5


def test_an_unknown_column_is_an_error_that_lists_them(coding: Asking) -> None:
    run, server, _ = coding(animal)
    assert "There is no column 'titel'" in run("ask.map('{titel}?', [{'title': 'x'}])")
    assert posts(server) == []


def test_an_estimate_sends_nothing(coding: Asking) -> None:
    run, server, _ = coding(animal)
    assert "'rows': 2, 'requests': 2" in run("print(ask.estimate('Which?', ['cat', 'dog']))")
    assert posts(server) == []


# -- limits --------------------------------------------------------------------------------------------------------


def test_its_cost_is_charged_and_never_exceeds_the_budget(coding: Asking) -> None:
    served: list[float] = []

    def answer(body: dict[str, Any]) -> Any:
        served.append((60 * 2.5 + 10 * 10) / 1e6)
        return text("dogs").then(usage(60, 10))

    run, _, interpreter = coding(answer)
    printed = run(
        "values = ask.map('Which?', list(range(400)), budget=0.05, at_once=16, max_tokens=50, schema=['dogs'])\nprint(values[-1])"
    )
    assert 0.04 < sum(served) <= 0.05
    assert "of its budget of $0.0500" in printed
    assert interpreter.user.budget.spent == pytest.approx(sum(served))


def test_a_job_that_clearly_costs_too_much_sends_nothing(coding: Asking) -> None:
    run, server, _ = coding(animal)
    assert "Nothing was sent" in run("ask.map('Which?', list(range(400)), budget=0.001)")
    assert posts(server) == []


def test_every_row_has_an_answer_once_from_a_server_that_fails_throttles_and_hangs(coding: Asking) -> None:
    """2,000 rows; one in seven requests fails, some are throttled, some hang for longer than the deadline allows."""
    count, served, lock = 0, Counter[str](), threading.Lock()

    def answer(body: dict[str, Any]) -> Any:
        nonlocal count
        with lock:
            count += 1
            number = count
        if number % 97 == 0:
            return error(429, headers={"Retry-After": "0"})
        if number % 53 == 0:
            return error(503, headers={"Retry-After": "0"})
        if number % 401 == 0:
            return stall(None)
        row = re.findall(r"\d+", prompt_in(body))[-1]
        with lock:
            served[row] += 1
        return text(row)

    run, _, interpreter = coding(answer)
    interpreter.llm.timeout = 2
    printed = run("v = ask.map('Number?', list(range(2000)), schema=int, at_once=16)\nprint(v == list(range(2000)))")
    assert "True" in printed
    assert set(served) == {str(row) for row in range(2000)} and set(served.values()) == {1}


def test_ctrl_c_stops_and_the_next_run_goes_on(coding: Asking) -> None:
    answered: list[str] = []
    enough = threading.Event()

    def answer(body: dict[str, Any]) -> Any:
        if len(answered) >= 30 and not enough.is_set():
            enough.set()
            return stall(None)
        if enough.is_set() and not again.is_set():
            return stall(None)
        answered.append(prompt_in(body))
        return text("ok")

    again = threading.Event()
    run, _, interpreter = coding(answer)
    output: list[str] = []
    running = threading.Thread(target=lambda: output.append(run("v = ask.map('Which?', list(range(60)), at_once=4)")))
    running.start()
    enough.wait()
    interpreter.computer.stop()
    running.join()
    assert "Run it again to continue" in output[0]
    again.set()
    assert "True" in run("print(ask.map('Which?', list(range(60)), at_once=4) == ['ok'] * 60)")
    assert len(answered) == 60 and len(set(answered)) == 60


SCRIPT = """
import sys
from interpreter import OpenInterpreter

made = OpenInterpreter()
made.llm.model, made.llm.api_base, made.llm.api_key = "gpt-4o", sys.argv[1], "key"
output = made.computer.run("python", "print('all:', ask.map('Which?', list(range(300)), at_once=4) == ['ok'] * 300)")
print("".join(str(each["content"]) for each in output), flush=True)
made.reset()
"""


def test_a_killed_job_goes_on_where_it_ended(tmp_path: Path) -> None:
    answered = Counter[str]()
    many = threading.Event()

    def answer(body: dict[str, Any]) -> Any:
        answered[prompt_in(body)] += 1
        if len(answered) > 100:
            many.set()
        return text("ok").then(stall(0.01))

    with ModelServer([answer], repeat=True) as server:
        script = tmp_path / "job.py"
        script.write_text(SCRIPT)
        arguments = [sys.executable, str(script), server.base_url]
        with subprocess.Popen(arguments, env={**os.environ}, stdout=subprocess.PIPE, start_new_session=True) as first:
            many.wait()
            os.kill(first.pid, signal.SIGKILL)
        done = subprocess.run(arguments, env={**os.environ}, capture_output=True, text=True, check=True)
    assert "all: True" in done.stdout
    assert len(answered) == 300
    assert sum(answered.values()) <= 300 + 4 + 4  # those on their way when it was killed


def test_answers_are_not_kept_on_disk_without_a_history(coding: Asking) -> None:
    from interpreter.config.homes import our_folder

    run, server, _ = coding(animal, conversation_history=False)
    run("ask.map('Which?', ['cat']); ask.map('Which?', ['cat'])")
    assert len(posts(server)) == 1 and not (our_folder() / "answers.sqlite3").exists()


def test_secrets_do_not_reach_the_runtime(coding: Asking) -> None:
    run, _, interpreter = coding(animal)
    interpreter.llm.api_key = "sk-very-secret-key-value"
    printed = run(
        "import sys, os\nask.map('Which?', ['cat'])\nmodule = sys.modules['interpreter_ask']\n"
        "print('secret' in repr(vars(module)) or 'sk-very' in str(os.environ))"
    )
    assert "False" in printed


def test_plan_mode_and_the_sandbox_allow_it(coding: Asking) -> None:
    _, _, interpreter = coding(animal)
    interpreter.mode = "plan"
    code = "print(ask.map('Which?', ['cat']))"
    messages = list(interpreter.session.perform(_block(code), interpreter.agent.actor).chunks())
    printed = json.dumps([each.get("content") for each in messages])
    assert "Cats." in printed or "sandbox" in printed.lower()


def _block(code: str) -> Any:
    from interpreter.session import Block

    return Block("python", code)
