"""Calls of `computer` tools from Python code."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from example_computer_tool import PNG, CallTester, calls_of, tester
from interpreter.errors import ComputerError
from python_runtimes import ENGINES_FULL
from sampling import some

__all__ = ["tester"]
pytestmark = pytest.mark.usefixtures("engine")


@pytest.fixture(params=ENGINES_FULL)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("INTERPRETER_PYTHON_ENGINE", request.param)
    return str(request.param)


def test_values_round_trip(tester: CallTester) -> None:
    ran = tester.do("""
import datetime, pathlib
example = computer.example
values = [None, True, 3, 2.5, "Zoë ✓", [1, [2]], {"a": {"b": 1}}, b"\\x00\\xff", {"$odd": 1}, {1: "x"}]
assert example.echo(values) == values, example.echo(values)
assert example.echo(1, 2, a=3) == [1, 2, {"a": 3}]
assert example.echo((1, 2)) == [1, 2]
assert example.echo(pathlib.Path("x")) == "x"
assert str(example.echo(float("nan"))) == "nan"
day = datetime.datetime(2026, 1, 2, 3, 4)
assert example.echo(day) == day and example.kind(day.date()) == "date"
print(example.width, example.part.twice(4), example.part.title)
example.part.title = "mine"
print(example.part.title)
""")
    assert ran.text == "7 8 none\nmine\n"
    assert ran.ended == "done"


def test_a_picture_round_trips_as_a_picture(tester: CallTester, tmp_path: Path) -> None:
    ran = tester.do(f"""
picture = computer.example.picture()
picture.save({str(tmp_path / "x.png")!r})
print(picture, picture.width, picture.left, picture.scale, picture.on_screen(1, 1), picture.about)
print(picture.base64[:8], computer.example.kind(picture), len(picture.png))
picture
""")
    assert ran.stdout == ("<Picture 2 x 1> 2 10 2 (12, 22) {'of': 'nothing'}\n" + f"iVBORw0K Picture {len(PNG)}\n")
    assert (tmp_path / "x.png").read_bytes() == PNG
    assert [chunk["format"] for chunk in ran.of_type("image")] == ["base64.png"]


def test_imports_return_the_same_object_without_loading_the_package(tester: CallTester) -> None:
    ran = tester.do("""
import sys
import computer
import computer.example as one
from computer import example, help
print(one is example is computer.example, one, [name for name in sys.modules if name.split(".")[0] == "interpreter"])
""")
    assert ran.text == "True computer.example []\n"
    assert tester.computer.variables() == {}


def test_user_code_named_computer_takes_precedence(tester: CallTester) -> None:
    Path("computer.py").write_text("mine = 'from the file'\n")
    ran = tester.do("import computer\nprint(computer.mine)\ndel computer\ncomputer = 5\nprint(computer)\ndel computer\n"
                  "print(computer.example.width)")  # fmt: skip
    assert ran.text == "from the file\n5\n7\n"


def test_a_wrong_name_suggests_similar_ones(tester: CallTester) -> None:
    ran = tester.do("for wrong in (lambda: computer.example.ecko, lambda: computer.mous, lambda: computer.zzz):\n"
                  "    try: wrong()\n    except AttributeError as error: print(error)")  # fmt: skip
    first, second, third = ran.text.splitlines()
    assert first == "There is no computer.example.ecko. Did you mean computer.example.echo?"
    assert second == "There is no computer.mous. Did you mean computer.mouse?"
    assert third.startswith("There is no computer.zzz. Available: ai, browser,")


def test_private_and_host_attributes_cannot_be_reached(tester: CallTester) -> None:
    for path in (
        "example.computer",
        "example._at_once",
        "example.terminate",
        "example.check_sending",
        "example.__class__",
        "run",
        "interpreter",
        "example.echo.__func__",
    ):
        ran = tester.do(f"computer._ask({{'how': 'get', 'path': {path!r}}})")
        assert "There is no computer." in ran.stderr, path


@pytest.mark.parametrize(
    ("raised", "caught"),
    some(
        2,
        [
            ("ValueError", "ValueError"),
            ("FileNotFoundError", "FileNotFoundError"),
            ("PermissionError", "PermissionError"),
            ("TimeoutError", "TimeoutError"),
            ("KeyError", "KeyError"),
            ("odd", "ComputerError"),
            ("several", "LookupError"),
        ],
    ),
)
def test_errors_keep_their_type_and_message(tester: CallTester, raised: str, caught: str) -> None:
    ran = tester.do(f"computer.example.fail({raised!r}, 'no such button: Save')")
    assert f"{caught}: " in ran.stderr
    assert "no such button: Save" in ran.stderr
    assert (
        "example_computer_tool.py" not in ran.stderr and "parcels" not in ran.stderr and "report.py" not in ran.stderr
    )
    assert ran.ended == "error"


def test_code_can_catch_errors_of_unknown_types(tester: CallTester) -> None:
    ran = tester.do("try: computer.example.fail('odd')\nexcept computer.ComputerError as error: print('caught', error)")
    assert ran.text == "caught not today\n"


def test_the_error_names_a_value_that_cannot_be_passed(tester: CallTester) -> None:
    assert "Can't pass a object" in tester.do("computer.example.thing()").stderr
    assert "Can't pass a function" in tester.do("computer.example.echo(lambda: 1)").stderr
    assert tester.do("print(computer.example.echo(1))").text == "1\n"


def test_the_error_for_wrong_arguments_shows_the_usage(tester: CallTester) -> None:
    told = tester.do("computer.example.kind()").stderr
    assert "TypeError: computer.example.kind: missing a required argument: 'value'" in told
    assert "Usage: computer.example.kind(value)" in told


def test_tool_output_appears_in_order_with_printed_output(tester: CallTester) -> None:
    ran = tester.do(
        "print('before')\ncomputer.example.show('words')\nprint('between')\ncomputer.example.show()\nprint('after')"
    )
    kinds = [chunk.get("content") if chunk["type"] == "console" else "image"
             for chunk in ran.chunks if chunk["type"] in ("console", "image") and chunk["format"] != "active_line"]  # fmt: skip
    assert "".join(kind if kind != "image" else "[image]\n" for kind in kinds).splitlines() == [
        "before", "words", "between", "[image]", *(["'shown'"] if kinds[-1].endswith("'shown'\n") else []), "after",
    ]  # fmt: skip


def test_without_emit_images_only_the_user_gets_images(tester: CallTester) -> None:
    tester.computer.emit_images = False
    (image,) = tester.do("computer.example.show();").of_type("image")
    assert image["recipient"] == "user"


def test_ten_megabytes_round_trip(tester: CallTester) -> None:
    assert tester.do("data = b'x' * 10_000_000\nprint(computer.example.echo(data) == data)").text == "True\n"


def test_help_lists_signatures_and_descriptions(tester: CallTester) -> None:
    ran = tester.do("print(computer.help('example'))\nprint(computer.help('example.mail'))")
    assert "computer.example.echo(*values, **named) # Give it back." in ran.text
    assert "computer.example.mail(to, text) # Send a message. (asks the user first)" in ran.text
    assert "computer.example.width # How wide it is." in ran.text
    with pytest.raises(ComputerError, match=r"There is no computer\.nonsense"):
        tester.computer.help("nonsense")


def test_chunks_report_each_call(tester: CallTester) -> None:
    ran = tester.do("computer.example.press('x')\ncomputer.example.picture()\ncomputer.example.fail('ValueError')")
    told = [(call["told"], call["outcome"], call["acts"], len(call["pictures"])) for call in calls_of(ran)]
    assert told == [
        ("computer.example.press('x')", "ok", True, 0),
        ("computer.example.picture()", "ok", False, 1),
        ("computer.example.fail('ValueError')", "failed", False, 0),
    ]
    assert calls_of(ran)[2]["error"] == "not today"


def test_completion_offers_the_tools(tester: CallTester) -> None:
    tester.do("computer.example.width")
    offered = tester.computer.complete("python", "computer.exa")
    assert ("example", "module") in [tuple(match) for match in offered.matches]
    assert "echo" in [text for text, _ in tester.computer.complete("python", "computer.example.ec").matches]


def test_without_a_computer_a_call_fails_with_a_clear_error() -> None:
    from python_runtimes import PythonRuntime

    python = PythonRuntime(os.environ["INTERPRETER_PYTHON_ENGINE"])
    try:
        assert "There is no computer to call." in python.do("computer.display.view()").stderr
    finally:
        python.terminate()
