"""%script: the blocks needed for the result, as a plain Python program."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from export.conversations import declined, drawn, failed, printed, ran, user
from interpreter.errors import ExportError
from interpreter.export import Document, ExportedConversation
from interpreter.script.program import Installed, installed_for, program
from interpreter.session.journal.reader import Entry

INSTALLED = Installed(
    (3, 11, 7),
    {
        "pandas": ["pandas"],
        "numpy": ["numpy"],
        "matplotlib": ["matplotlib"],
        "PIL": ["Pillow"],
        "openpyxl": ["openpyxl"],
    },
    {"pandas": "2.2.3", "numpy": "2.1.0", "matplotlib": "3.9.0", "Pillow": "11.0", "openpyxl": "3.1.5"},
    {"pandas": ["numpy", "not-here"], "numpy": ["pandas"]},
)


def made(*entries: Entry, everything: bool = False, folder: str = ".") -> Document:
    told = ExportedConversation(entries, "Title", folder=folder, installed=lambda: INSTALLED, everything=everything)
    return program(told)


def body(*entries: Entry, everything: bool = False) -> str:
    """The program without its header and docstring."""
    text = made(*entries, everything=everything).text
    return "\n".join(text.split("\n")[(ast.parse(text).body[0].end_lineno or 0) :]).strip("\n")


def run(text: str, folder: Path) -> str:
    (folder / "made.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "made.py"], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr + text
    return done.stdout


WRITES = ran("open('out.txt', 'w').write(str(x))")


# -- which blocks ---------------------------------------------------------------------------------------------------


def test_only_blocks_needed_for_the_result_are_kept() -> None:
    code = body(
        ran("x = 1"),
        ran("y = 2"),
        declined("x = 3"),
        failed("x = nope"),
        ran("x", printed("1\n")),
        ran("print(x, type(x))", printed("1 int\n")),
        WRITES,
    )
    assert code == "x = 1\n\nprint(x, type(x))\n\nopen('out.txt', 'w').write(str(x))"


def test_a_reassigned_value_does_not_need_the_earlier_one() -> None:
    assert body(ran("x = 1"), ran("x = 2"), WRITES) == "x = 2\n\nopen('out.txt', 'w').write(str(x))"


@pytest.mark.parametrize(
    "change",
    [
        "x.append(4)",
        "x[0] = 4",
        "x += [4]",
        "x.field = 4",
        "if len(x): x = [4]",
        "for x in [[4]]: pass",
        "import random\nrandom.shuffle(x)",
        "y = x\ny.append(4)",
        "del x[0]",
        "exec('x = 4')",
        "from os.path import *",
        "globals()['x'] = 4",
        "[x.append(i) for i in range(3)]",
    ],
)
def test_code_that_may_change_a_needed_value_is_kept(change: str) -> None:
    code = body(ran("x = [1, 2, 3]"), ran(change), WRITES)
    assert "x = [1, 2, 3]" in code and change.splitlines()[-1] in code


@pytest.mark.parametrize(
    "look",
    ["x", "x.head()", "len(x)", "x.describe()\nx.dtypes", "print(x[:3])", "for i in x:\n    print(i)", "z = x.copy()"],
)
def test_code_that_only_inspects_is_dropped(look: str) -> None:
    assert body(ran("x = [1]"), ran(look, printed("...")), WRITES, ran("print('end')", printed("end"))) == (
        "x = [1]\n\nopen('out.txt', 'w').write(str(x))\n\nprint('end')"
    )


def test_changes_through_a_related_object_count() -> None:
    code = body(
        ran("import matplotlib.pyplot as plt\nfig, ax = plt.subplots()"),
        ran("ax.plot([1, 2])"),
        ran("fig.savefig('a.png')"),
    )
    assert "ax.plot([1, 2])" in code


def test_a_function_needs_names_defined_later() -> None:
    code = body(ran("def f():\n    return K"), ran("K = 3"), ran("J = 4"), ran("print(f())", printed("3\n")))
    assert "K = 3" in code and "J = 4" not in code


def test_a_call_of_a_function_with_side_effects_is_a_result() -> None:
    define = ran("def save(v):\n    open('o', 'w').write(v)")
    assert "save('a')" in body(define, ran("save('a')"), ran("1 + 1", printed("2")))
    counting = ran("n = 0\ndef count():\n    global n\n    n += 1")
    assert "count()" in body(counting, ran("count()"), ran("print(n)", printed("1")))


def test_the_last_value_is_printed_without_another_result() -> None:
    assert body(ran("x = 20"), ran("x + 1", printed("21\n"))) == "x = 20\n\nprint(x + 1)"


def test_everything_keeps_all_successful_blocks() -> None:
    code = body(ran("x = 1\nx", printed("1")), failed("y"), declined("z"), WRITES, everything=True)
    assert code == "x = 1\nprint(x)\n\nopen('out.txt', 'w').write(str(x))"


def test_prints_are_kept_only_in_result_blocks() -> None:
    code = body(
        ran("x = 1\nprint('loaded', x)", printed("loaded 1")),
        ran("open('o','w').write('a')\nprint('saved')", printed("saved")),
    )
    assert "loaded" not in code and "saved" in code


def test_names_bound_only_by_a_failed_block_are_taken_from_it() -> None:
    code = body(failed("import json\nK = 2\nx = json.nope"), ran("x = K * 2"), WRITES)
    assert code.startswith("# From a block that failed later on:\nK = 2\n\nx = K * 2")
    assert "json" not in code


def test_a_note_mentions_a_failed_block_that_may_have_changed_a_value() -> None:
    notes = made(ran("x = []"), failed("x.append(1)\n1 / 0"), WRITES).notes
    assert any("may have changed `x`" in note for note in notes)


def test_nothing_to_export_is_an_error() -> None:
    with pytest.raises(ExportError, match="nothing to export"):
        made(user("hi"), declined("x = 1"))


def test_a_note_mentions_an_unbound_name() -> None:
    assert any("`ghost`" in note for note in made(ran("open('o', 'w').write(ghost)")).notes)


# -- how they are written ---------------------------------------------------------------------------------------------


def test_imports_are_at_the_top_once_and_only_if_used() -> None:
    code = body(
        user("Add things up"),
        ran("import os, json\nimport pandas as pd  # tables\nx = pd.DataFrame()"),
        ran("import pandas as pd\nfrom collections import Counter, deque\nx.to_csv('o.csv')\nx.attrs = Counter()"),
    )
    assert code == (
        "from collections import Counter\n\nimport pandas as pd\n\n\n"
        "# Add things up\nx = pd.DataFrame()\n\nx.to_csv('o.csv')\nx.attrs = Counter()"
    )


def test_imports_that_depend_on_earlier_code_stay_in_place() -> None:
    code = body(ran("import sys\nsys.path.append('lib')\nimport numpy as np\nopen('o', 'w').write(str(np))"))
    assert code.index("sys.path") < code.index("import numpy")
    own = body(ran("open('mine.py', 'w').write('A = 1')"), ran("import mine\nprint(mine.A)", printed("1")))
    assert own.index("open(") < own.index("import mine")


def test_shell_blocks_that_only_inspect_are_dropped(tmp_path: Path) -> None:
    text = made(
        ran("ls -l | head -3; pwd", printed("..."), language="shell"),
        ran("git status && cat a.txt 2>/dev/null", printed("..."), language="bash"),
        ran("echo 'a \"b\" \\n' > a.txt", language="sh"),
        ran("print(open('a.txt').read())", printed("...")),
    ).text
    assert "ls -l" not in text and "git status" not in text
    assert run(text, tmp_path).strip() == 'a "b" \\n'


def test_the_shell_keeps_its_folder_and_variables(tmp_path: Path) -> None:
    text = made(
        ran("mkdir -p deep/er\ncd deep/er\nexport WHO=me", language="shell"),
        ran("echo $WHO > who.txt", language="shell"),
        ran("import os\nprint(os.environ['WHO'], os.path.basename(os.getcwd()))", printed("...")),
    ).text
    assert run(text, tmp_path) == "me er\n"
    assert (tmp_path / "deep" / "er" / "who.txt").exists()


def test_ipython_syntax_is_translated(tmp_path: Path) -> None:
    text = made(
        ran("%matplotlib inline\n%pip install -q pandas openpyxl\nname = 'x'"),
        ran("!echo hello {name} > a.txt\nlines = !cat a.txt\nprint(lines)", printed("...")),
        ran("%%writefile b.txt\ntwo\nlines"),
        ran("%env COLOR=red\n%cd sub\n%time y = 3"),
        ran("%%time\nz = 4\nopen('c.txt', 'w').write(str(z))"),
        ran("import os\nprint(os.getcwd()[-3:], os.environ['COLOR'])", printed("...")),
    ).text
    (tmp_path / "sub").mkdir()
    assert run(text, tmp_path) == "['hello x']\nsub red\n"
    assert (tmp_path / "b.txt").read_text() == "two\nlines\n"
    assert (tmp_path / "sub" / "c.txt").read_text() == "4"


def test_notes_mention_what_cannot_be_translated() -> None:
    result = made(ran("%lsmagic\n%store y\nopen('o', 'w').write('1')"), ran("let a", language="javascript"))
    assert any("%store y" in note for note in result.notes)
    assert any("javascript" in note for note in result.notes)
    assert all(note in result.text for note in result.notes)


def test_top_level_await_is_wrapped_and_names_stay_global(tmp_path: Path) -> None:
    text = made(
        ran('import asyncio\ntext = """a\n  b"""\ndef get():\n    return x'),
        ran("x = sum(await asyncio.gather(asyncio.sleep(0, 1), asyncio.sleep(0, 2)))"),
        ran("print(get(), text)", printed("...")),
    ).text
    assert run(text, tmp_path) == "3 a\n  b\n"


@pytest.mark.full
def test_figures_are_shown_and_display_prints(tmp_path: Path) -> None:
    text = made(
        ran("import matplotlib\nmatplotlib.use('Agg')\nimport pandas as pd"),
        ran("pd.Series([1, 2]).plot()", drawn()),
        ran("display({'a': 1})", printed("{'a': 1}")),
    ).text
    assert "plt.show()" in text and "import matplotlib.pyplot as plt" in text
    assert run(text, tmp_path) == "{'a': 1}\n"


def test_comments_layout_and_unusual_characters_are_kept() -> None:
    code = "# größe: 数\nä = {\n    'k': 1,  # one\n}\nopen('ö.txt', 'w').write(str(ä)); ä"
    assert body(ran(code)) == code.removesuffix("; ä")


def test_one_statement_of_a_line_can_be_dropped() -> None:
    code = "open('a.txt', 'w').write('x'); len('seen'); open('b.txt', 'w').write('y')"
    assert body(ran(code)) == "open('a.txt', 'w').write('x'); open('b.txt', 'w').write('y')"


def test_the_title_of_a_figure_is_kept() -> None:
    code = "import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.title('Amounts'); plt.savefig('a.png')"
    assert body(ran(code)).endswith("plt.plot([1, 2]); plt.title('Amounts'); plt.savefig('a.png')")


def test_generated_names_avoid_the_conversations_names(tmp_path: Path) -> None:
    text = made(
        ran("async def main():\n    return 5\nshell = 7"),
        ran("cd /", language="shell"),
        ran("print(await main(), shell)", printed("...")),
    ).text
    assert run(text, tmp_path) == "5 7\n"


# -- dependencies -----------------------------------------------------------------------------------------------------


def header(text: str) -> dict[str, object]:
    """The inline metadata, read as in PEP 723."""
    import tomllib

    found = re.search(r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$", text)
    assert found is not None and found["type"] == "script"
    lines = found["content"].splitlines(keepends=True)
    return tomllib.loads("".join(line[2:] if line.startswith("# ") else line[1:] for line in lines))


def test_dependencies_have_the_sessions_versions() -> None:
    text = made(
        ran("!pip install 'openpyxl>=3' not-there"),
        ran("import os, PIL.Image\nimport pandas as pd\nimport numpy as np"),
        ran("pd.DataFrame().to_excel('a.xlsx'); PIL.Image"),
    ).text
    assert header(text) == {
        "requires-python": ">=3.11",
        "dependencies": ["openpyxl==3.1.5", "pandas==2.2.3", "pillow==11.0"],
        "tool": {
            "open-interpreter": {
                "python": "3.11.7",
                "locked": ["numpy==2.1.0", "openpyxl==3.1.5", "pandas==2.2.3", "pillow==11.0"],
            }
        },
    }


def test_a_local_module_is_not_a_dependency(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("")
    result = made(ran("import mine\nimport elsewhere\nmine.go(elsewhere)"), folder=str(tmp_path))
    assert header(result.text)["dependencies"] == ["elsewhere"]
    assert any("`mine` from the folder" in note for note in result.notes)


def test_a_program_without_dependencies_has_an_empty_list() -> None:
    assert header(made(ran("print(1)", printed("1"))).text)["dependencies"] == []


def test_packages_are_read_from_the_sessions_python() -> None:
    import pandas

    installed = installed_for(sys.executable, os.environ)
    assert installed.python == sys.version_info[:3]
    assert f"numpy=={installed.versions['numpy']}" in installed.lock(["pandas==1"])
    assert installed.modules["PIL"] == ["pillow"]
    assert installed.versions["pandas"] == pandas.__version__
    with pytest.raises(ExportError):
        installed_for("/no/such/python", os.environ)


@pytest.mark.parametrize(
    "answer",
    ["", "hello", "7", "[" * 100_000, '{"python": [3]}', '{"python": [3, 11], "modules": [], "versions": {}}'],
)
def test_a_python_with_invalid_output_is_an_error(tmp_path: Path, answer: str) -> None:
    with pytest.raises(ExportError, match="Can't list the packages"):
        installed_for(fake_python(tmp_path, answer), os.environ)


def test_the_sessions_python_cannot_inject_code_into_the_program(tmp_path: Path) -> None:
    evil = '1\\"\\n]\\nimport os'
    answer = (
        f'{{"python": [3, 11, 7], "modules": {{"numpy": ["{evil}"]}}, "versions": {{"numpy": "{evil}", "{evil}": "1"}}, '
        f'"needs": {{}}}}'
    )
    installed = installed_for(fake_python(tmp_path, answer), os.environ)
    assert installed == Installed((3, 11, 7), {"numpy": []}, {})


def fake_python(folder: Path, answer: str) -> str:
    """A fake Python that prints this answer."""
    (folder / "answer").write_text(answer)
    program = folder / "python"
    program.write_text(f"#!/bin/sh\ncat '{folder}/answer'\n")
    program.chmod(0o755)
    return str(program)
