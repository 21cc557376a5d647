"""`share` makes values of one language available in the others."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interpreter import OpenInterpreter
from interpreter.languages.custom import custom_language
from interpreter.runtimes.sharing import as_r, check
from sampling import some

FRAME = """
import pandas
frame = pandas.DataFrame({
    "n": [1, 2, 3], "x": [1.5, None, 2.5], "name": ["Grüße", "a'b\\"c`\\\\", None], "yes": [True, False, True],
    "when": pandas.to_datetime(["2024-01-02T03:04:05", None, "1999-12-31"], format="ISO8601"),
})
share("frame")
"""


@pytest.fixture
def interpreter(tmp_path: Path) -> Iterator[OpenInterpreter]:
    made = OpenInterpreter()
    made.computer.runtimes.context.cwd = str(tmp_path)
    yield made
    made.computer.terminate()


def run(interpreter: OpenInterpreter, language: str, code: str) -> str:
    chunks = list(interpreter.computer.run(language, code, stream=True))
    return "".join(str(chunk["content"]) for chunk in chunks if chunk.get("format") == "output").strip()


def test_a_python_table_becomes_rows_in_javascript_and_ruby(interpreter: OpenInterpreter) -> None:
    assert run(interpreter, "python", FRAME) == ""
    if shutil.which("node"):
        code = "console.log(JSON.stringify(frame[1]), frame[0].when instanceof Date, frame[0].name)"
        seen = '{"n":2,"x":null,"name":"a\'b\\"c`\\\\","yes":false,"when":null} true Grüße'
        assert run(interpreter, "javascript", code) == seen
    if shutil.which("ruby"):
        code = "puts frame.size, frame[1]['name'], frame[0]['when'].year, frame[1]['x'].inspect"
        assert run(interpreter, "ruby", code).split("\n")[:4] == ["3", "a'b\"c`\\", "2024", "nil"]


@pytest.mark.needs("Rscript")
def test_a_table_goes_to_r_and_back(interpreter: OpenInterpreter) -> None:
    run(interpreter, "python", FRAME)
    classes = "cat(sapply(frame, function(column) class(column)[1]), nrow(frame), format(frame$when[1]), frame$name[2])"
    assert run(interpreter, "r", classes) == (
        "integer numeric character logical POSIXct 3 2024-01-02 03:04:05 a'b\"c`\\"
    )
    run(
        interpreter,
        "r",
        'frame$n <- frame$n * 2L; frame$day <- as.Date(frame$when); share("frame", many = c(a = 1, b = 2))',
    )
    assert run(
        interpreter, "python", "print(frame['n'].tolist(), frame['when'][0].isoformat(), frame['x'].isna().tolist())"
    ) == ("[2, 4, 6] 2024-01-02T03:04:05+00:00 [False, True, False]")
    assert (
        run(interpreter, "python", "print(frame['day'][0].day, frame.dtypes['yes'], many)") == "2 bool {'a': 1, 'b': 2}"
    )


@pytest.mark.needs("node")
def test_javascript_values_are_shared_with_python(interpreter: OpenInterpreter) -> None:
    code = "let rows = [{n: 1, t: 'a'}, {n: 2.5, t: null}]; const settings = {deep: [1, 'two', null, {x: true}]}; share('rows', {settings})"
    assert run(interpreter, "javascript", code) == ""
    assert run(interpreter, "python", "print(type(rows).__name__, rows['n'].tolist(), settings)") == (
        "DataFrame [1.0, 2.5] {'deep': [1, 'two', None, {'x': True}]}"
    )
    assert run(interpreter, "sql", "SELECT sum(n) AS total FROM rows").endswith("3.5")
    run(interpreter, "python", "rows = 7\nshare('rows')")
    assert run(interpreter, "javascript", "console.log(rows + 1)") == "8"  # although `let` declared it


@pytest.mark.needs("ruby")
def test_ruby_values_are_shared_with_python(interpreter: OpenInterpreter) -> None:
    run(
        interpreter,
        "ruby",
        "people = [{name: 'Ada', age: 36}, {name: 'Bo', age: nil}]; total = 3; share :people, :total, list: [1, 'é']",
    )
    assert (
        run(interpreter, "python", "print(people['age'].tolist()[0], people.shape, total, list)")
        == "36 (2, 2) 3 [1, 'é']"
    )


@pytest.mark.needs("jshell")
def test_values_go_to_java_and_back(interpreter: OpenInterpreter) -> None:
    run(interpreter, "python", FRAME + "share(deep={'a': [1, 2.5, None], 'b\\n\"': 'é'}, many=[1.5, 2.5], big=2**40)")
    code = """
        var row = frame.get(1);
        System.out.println(frame.size() + " " + row.get("name") + " " + row.get("x") + " " + frame.get(0).get("when"));
        System.out.println(deep + " " + (many.get(0) + many.get(1)) + " " + (big + 1));
    """
    assert run(interpreter, "java", code).splitlines() == [
        "3 a'b\"c`\\ null 2024-01-02T03:04:05",
        "{a=[1, 2.5, null], b",
        '"=é} 4.0 1099511627777',
    ]
    run(
        interpreter,
        "java",
        'share("rows", List.of(Map.of("n", 1, "day", LocalDate.of(2024, 1, 2)), Map.of("n", 2.5)));'
        'share("notes", Map.of("t", List.of("a\\"b", "c\\n"))); share("array", new int[] {1, 2});',
    )
    seen = run(interpreter, "python", "print(rows['n'].tolist(), rows['day'].tolist()[0].day, notes, array)")
    assert seen == "[1.0, 2.5] 2 {'t': ['a\"b', 'c\\n']} [1, 2]"
    message = run(interpreter, "java", 'share("thread", Thread.currentThread());')
    assert "thread can't be shared: it has a Thread. Texts, numbers" in message


@pytest.mark.parametrize("kernel", ["python3", "ir"])
def test_values_go_to_a_kernel_and_back(interpreter: OpenInterpreter, kernel: str) -> None:
    language = custom_language({"name": "Kernel", "kernel": kernel})
    if language().version() is None:
        pytest.skip(f"there is no kernel {kernel}")
    interpreter.computer.languages.append(language)
    interpreter.computer.max_shared = 1000
    run(interpreter, "python", FRAME)
    code, bad = {
        "python3": ("frame['n'] *= 2\nshare('frame', total=int(frame['n'].sum()))", "share(x={1, 2})"),
        "ir": ('frame$n <- frame$n * 2L; share("frame", total = sum(frame$n))', "share(x = function() 1)"),
    }[kernel]
    assert run(interpreter, "kernel", code) == ""
    assert run(interpreter, "python", "print(frame['n'].tolist(), frame['name'].tolist()[0], total)") == (
        "[2, 4, 6] Grüße 12"
    )
    assert "x can't be shared: it has a" in run(interpreter, "kernel", bad)
    run(interpreter, "python", "share(total=13)")
    assert run(interpreter, "kernel", "total + 1" if kernel == "python3" else "cat(total + 1)") == "14"


def test_in_process_python_shares_values(interpreter: OpenInterpreter) -> None:
    interpreter.computer.python = "in-process"
    interpreter.computer.max_shared = 1000
    assert run(interpreter, "python", "own = [1, 2]\nshare('own')") == ""
    assert run(interpreter, "shell", "echo $shared_own") == "[1, 2]"
    if shutil.which("node"):
        run(interpreter, "javascript", "share({ own: own.length })")
        assert run(interpreter, "python", "print(own + 1)") == "3"
    assert "NotShareable: x can't be shared: it has a set" in run(interpreter, "python", "share(x={1})")
    assert "at most 1000 values" in run(
        interpreter, "python", "for n in range(6):\n    share(**{'v%d' % n: 'a' * 900})"
    )


def test_the_shell_gets_text_and_paths_of_csv_files(interpreter: OpenInterpreter) -> None:
    run(interpreter, "python", FRAME + 'share(greeting="it\'s $HOME", numbers=[1, 2])')
    assert run(interpreter, "shell", 'echo "$shared_greeting" $shared_numbers') == "it's $HOME [1, 2]"
    assert (
        run(interpreter, "shell", 'head -2 "$shared_frame"')
        == "n,x,name,yes,when\n1,1.5,Grüße,True,2024-01-02T03:04:05"
    )
    run(interpreter, "python", "share(greeting='new')")
    assert run(interpreter, "shell", "echo $shared_greeting") == "new"


@pytest.mark.parametrize(
    ("code", "message"),
    some(
        2,
        [
            ("x = {1, 2}\nshare('x')", "NotShareable: x can't be shared: it has a set. Tables (pandas"),
            ("x = float('nan')\nshare('x')", "NotShareable: x can't be shared"),
            ("x = []; x.append(x)\nshare('x')", "NotShareable: x can't be shared: Circular"),
            ("share('nothing')", "NameError: There is no variable 'nothing' to share."),
            (
                "share(x='a' * 2000)",
                "x is too large to share: 2013 characters, the limit (computer.max_shared) is 1000.",
            ),
        ],
    ),
)
def test_sharing_an_unsupported_value_raises(interpreter: OpenInterpreter, code: str, message: str) -> None:
    interpreter.computer.max_shared = 1000
    assert message in run(interpreter, "python", code)
    assert interpreter.computer.runtimes.context.shared == {}


def test_the_total_size_of_shared_values_is_limited(interpreter: OpenInterpreter) -> None:
    interpreter.computer.max_shared = 1000
    message = run(interpreter, "python", "for n in range(6):\n    share(**{'v%d' % n: 'a' * 900})")
    assert "'v5' was not shared: a session can share at most 1000 values" in message and "'v4'" not in message
    assert run(interpreter, "python", "share(v4='b')\nshare(v5='c')") == ""


@pytest.mark.needs("node")
def test_javascript_says_what_can_be_shared(interpreter: OpenInterpreter) -> None:
    message = run(interpreter, "javascript", "share({f: () => 1})")
    assert (
        "TypeError: f can't be shared: it has a Function" in message
        and "an array of flat objects is a table" in message
    )


@pytest.mark.needs("Rscript")
def test_r_says_what_can_be_shared(interpreter: OpenInterpreter) -> None:
    assert "f can't be shared: it has a function. Data frames" in run(interpreter, "r", "f <- function() 1; share('f')")
    interpreter.computer.max_shared = 100
    message = run(interpreter, "r", "share(long = strrep('a', 200))")
    assert "'long' was not shared: 212 characters are more than the limit of 100" in message


@pytest.mark.needs("ruby")
def test_ruby_says_what_can_be_shared(interpreter: OpenInterpreter) -> None:
    assert "f can't be shared: it has a Proc" in run(interpreter, "ruby", "f = proc { 1 }\nshare :f")


def test_shared_values_survive_undo(interpreter: OpenInterpreter) -> None:
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    run(interpreter, "python", "mine = 1")
    python: Any = interpreter.computer.runtimes.runtime("python")
    before = python.state
    run(interpreter, "javascript", "share({mine: 2})")
    assert run(interpreter, "python", "print(mine)") == "2"
    python.restore(before)
    assert run(interpreter, "python", "print(mine)") == "2"  # it is still shared, and set again


@pytest.mark.needs("bwrap")
def test_values_do_not_leave_a_sandbox(interpreter: OpenInterpreter) -> None:
    interpreter.sandbox = "workspace"
    run(interpreter, "python", "share(inside='yes', rows=[1, 2])")
    assert run(interpreter, "shell", "echo $shared_inside") == "yes"
    interpreter.sandbox = "off"
    assert run(interpreter, "shell", "echo [$shared_inside]").endswith("\n[]")  # after the notice of a new session


# -- validation in the host --------------------------------------------------------------------------------------------

COLUMN = {"name": "a", "type": "integer", "values": [1, None]}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("LD-PRELOAD", {"value": 1}),
        ("a b", {"value": 1}),
        ("", {"value": 1}),
        ("x", [1]),
        ("x", {"value": 1, "table": []}),
        ("x", {"table": []}),
        ("x", {"table": [{**COLUMN, "type": "code"}]}),
        ("x", {"table": [{**COLUMN, "values": ["system('ls')"]}]}),
        ("x", {"table": [{**COLUMN, "values": [True]}]}),
        ("x", {"table": [COLUMN, {**COLUMN, "values": [1]}]}),
        ("x", {"table": [{**COLUMN, "more": 1}]}),
        ("x", {"table": [{"name": "t", "type": "datetime", "values": ["today"]}]}),
        ("x", {"table": 5}),
    ],
    ids=[
        "name with a dash",
        "name with a space",
        "empty name",
        "list",
        "value and table",
        "no columns",
        "unknown column type",
        "text in an integer column",
        "boolean in an integer column",
        "columns of different length",
        "unknown field",
        "invalid date",
        "number as table",
    ],
)
def test_malformed_values_are_rejected(name: str, content: Any) -> None:
    with pytest.raises(ValueError, match=r"form in which|a name starts"):
        check(name, json.dumps(content), 1000)


def test_deep_and_infinite_values_are_rejected() -> None:
    for text in (
        '{"value": ' + "[" * 5000 + "]" * 5000 + "}",
        '{"value": NaN}',
        "{",
        '{"value": ' + "[" * 150 + "]" * 150 + "}",
    ):
        with pytest.raises(ValueError, match="form in which"):
            check("x", text, 100_000)


@pytest.mark.needs("Rscript")
def test_text_is_quoted_safely_in_r(interpreter: OpenInterpreter) -> None:
    nasty = ['"); quit(status = 9); ("', "`", "\\", '\\"', "'", "a\nb", "\u2028", "${x}", "\x01"]
    run(interpreter, "python", f"nasty = {nasty!r}\nkeys = {{key: 1 for key in nasty}}\nshare('nasty', 'keys')")
    run(interpreter, "r", "back <- nasty; names_back <- names(keys); share('back', 'names_back')")
    got = run(interpreter, "python", "print(back[:8] == nasty[:8], [a == b for a, b in zip(names_back, nasty)][:8])")
    assert got == f"True {[True] * 8}"
    assert as_r({"value": "a\0b"}) == '"ab"'
