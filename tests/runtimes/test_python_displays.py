"""Rich values: tables, figures, images, Markdown."""

from __future__ import annotations

import base64

import pytest

from python_runtimes import PythonRuntime, Ran, session

__all__ = ["session"]

RICH = """
class Rich:
    def __init__(self, **forms):
        self.forms = forms
        for name, form in forms.items():
            setattr(self, f"_repr_{name}_", lambda form=form: form)
    def __repr__(self):
        return "plain form"
"""
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture(autouse=True)
def _rich(session: PythonRuntime) -> None:
    session.do(RICH)


def images(ran: Ran) -> list[bytes]:
    return [base64.b64decode(chunk["content"]) for chunk in ran.of_type("image")]


def test_a_table_is_text_for_the_model_and_html_for_the_user(session: PythonRuntime) -> None:
    ran = session.do("import pandas\npandas.DataFrame({'a': [1, 2], 'b': ['x', 'y']})")
    assert "a  b" in ran.stdout
    (html,) = ran.of_type("code")
    assert (html["format"], html["recipient"]) == ("html", "user")
    assert "<table" in html["content"]


def test_the_html_of_a_table_has_all_rows_up_to_a_limit(session: PythonRuntime) -> None:
    whole = "import pandas\npandas.DataFrame({'n': range(200), 'words': ['word ' * 30] * 200})"
    ran = session.do(whole)
    (page,) = ran.of_type("code")
    assert page["content"].count("<tr") == 201
    assert page["content"].count("word " * 29 + "word") == 200
    assert "200 rows × 2 columns" in page["content"]
    assert len(ran.stdout.splitlines()) < 20  # the model gets the short form
    session.context.table_rows = 50
    try:
        (page,) = session.do(whole).of_type("code")
    finally:
        session.context.table_rows = 1000
    assert page["content"].count("<tr") == 52  # including one for the omitted rows
    (small,) = session.do("pandas.DataFrame({'n': range(3)})").of_type("code")
    assert "rows ×" not in small["content"]


def test_the_html_of_a_polars_table_has_all_rows(session: PythonRuntime) -> None:
    pytest.importorskip("polars")
    ran = session.do("import polars\npolars.DataFrame({f'c{n}': range(200) for n in range(20)})")
    (page,) = ran.of_type("code")
    assert (page["content"].count("<tr"), page["content"].count("<th>")) == (202, 20)  # two rows are names and types
    assert len(ran.stdout.splitlines()) < 20


def test_images_are_shown(session: PythonRuntime) -> None:
    ran = session.do(f"Rich(png={PNG!r})")
    assert images(ran) == [PNG]
    assert ran.of_type("image")[0]["format"] == "base64.png"
    assert session.do("display(Rich(jpeg=b'\\xff\\xd8'))").of_type("image")[0]["format"] == "base64.jpeg"
    ran = session.do("from PIL import Image\nImage.new('RGB', (4, 4))")
    assert images(ran)[0].startswith(b"\x89PNG")


def test_vector_graphics_go_to_the_user(session: PythonRuntime) -> None:
    ran = session.do("Rich(svg='<svg></svg>')")
    (source,) = [chunk for chunk in ran.chunks if chunk.get("mime") == "image/svg+xml"]
    assert source["recipient"] == "user"
    assert source["content"].strip() == "<svg></svg>"
    assert "plain form" in ran.stdout


def test_markdown_latex_and_json_are_shown(session: PythonRuntime) -> None:
    for name, form, mime in (("markdown", "# Title", "text/markdown"), ("latex", "$x^2$", "text/latex")):
        ran = session.do(f"Rich({name}={form!r})")
        (chunk,) = [chunk for chunk in ran.chunks if chunk.get("mime") == mime]
        assert chunk["content"] == form + "\n"
    ran = session.do("Rich(json={'a': [1, None, True]})")
    (chunk,) = [chunk for chunk in ran.chunks if chunk.get("mime") == "application/json"]
    assert '"a"' in chunk["content"]


def test_mime_bundles_are_shown(session: PythonRuntime) -> None:
    code = """
class Bundle:
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/html": "<b>bold</b>", "text/plain": "bold"}, {}
Bundle()
"""
    ran = session.do(code)
    assert ran.stdout == "bold\n"
    assert ran.of_type("code")[0]["content"] == "<b>bold</b>"


def test_display_shows_any_value(session: PythonRuntime) -> None:
    ran = session.do("print('a')\ndisplay(1, 'two', [3], None, Rich)\nprint('b')")
    assert ran.stdout.startswith("a\n1\n'two'\n[3]\nNone\n")
    assert ran.stdout.endswith("b\n")
    assert "object at 0x" in session.do("display(object())").stdout


def test_displays_can_be_changed(session: PythonRuntime) -> None:
    ran = session.do("handle = display('first', display_id=True)\nhandle.update('second')")
    assert ran.ended == "done", ran.stderr
    assert "'second'" in ran.stdout


@pytest.mark.parametrize("session", ["ipython"], indirect=True)  # the bare engine is for Pythons without IPython
def test_ipython_display_objects_are_shown(session: PythonRuntime) -> None:
    code = "from IPython.display import HTML, Markdown, SVG, JSON, Image, clear_output, display\n"
    assert session.do(code + "HTML('<i>x</i>')").of_type("code")[0]["content"] == "<i>x</i>"
    assert session.do(code + "display(Markdown('*hi*'))").chunks[-2]["content"] == "*hi*\n"
    assert session.do(code + "JSON({'a': 1})").ended == "done"
    assert images(session.do(code + f"Image({PNG!r})")) == [PNG]
    assert session.do(code + "clear_output()").ended == "done"


def test_values_that_cannot_be_shown_do_not_break_the_session(session: PythonRuntime) -> None:
    code = """
class Broken:
    def __repr__(self): raise ValueError("no repr")
    def _repr_html_(self): raise KeyError("no html")
Broken()
"""
    ran = session.do(code)
    assert "ValueError" in ran.text
    assert session.do("class Endless:\n    def __repr__(self): return repr(self)\nEndless()").ended
    assert session.do("Rich(html=5, json={1: object()}, png='not bytes')").ended == "done"
    assert session.do("loop = {}\nloop['me'] = loop\nRich(json=loop)").ended == "done"
    assert session.do("from unittest.mock import MagicMock\nMagicMock(name='mock')").ended == "done"
    assert session.do("1").stdout == "1\n"


class TestFigures:
    """Matplotlib figures."""

    @pytest.fixture(autouse=True)
    def _pyplot(self, session: PythonRuntime) -> None:
        session.do("import matplotlib.pyplot as plt")

    def test_an_open_figure_is_shown_at_the_end(self, session: PythonRuntime) -> None:
        ran = session.do("plt.plot([1, 2])\nprint('drawn')")
        assert images(ran)[0].startswith(b"\x89PNG")
        assert ran.stdout == "drawn\n"
        assert ran.stderr == ""
        assert session.do("plt.get_fignums()").stdout == "[]\n"
        assert not images(session.do("1"))

    def test_show_displays_at_once_without_a_warning(self, session: PythonRuntime) -> None:
        ran = session.do("plt.plot([1, 2])\nplt.show()\nprint('after')\nplt.plot([3])\nplt.show()")
        assert [chunk["type"] for chunk in ran.chunks if chunk.get("format") != "active_line"] == [
            "image",
            "console",
            "image",
        ]
        assert ran.stderr == ""

    def test_a_figure_as_a_value_is_shown_once(self, session: PythonRuntime) -> None:
        assert len(images(session.do("fig, ax = plt.subplots()\nax.plot([1])\nfig"))) == 1
        assert len(images(session.do("display(fig)"))) == 1
        assert len(images(session.do("plt.figure().add_subplot().get_figure().show()"))) == 1

    def test_figures_that_are_empty_or_closed_are_not_shown(self, session: PythonRuntime) -> None:
        assert not images(session.do("plt.figure()"))
        assert not images(session.do("plt.plot([1])\nplt.close()"))

    def test_saved_figures_are_shown_too(self, session: PythonRuntime) -> None:
        code = "import io\nfile = io.BytesIO()\nplt.plot([1, 2])\nplt.savefig(file)\nprint(file.tell() > 100)"
        ran = session.do(code)
        assert ran.stdout == "True\n"
        assert len(images(ran)) == 1

    def test_figures_are_shown_after_an_error(self, session: PythonRuntime) -> None:
        ran = session.do("plt.plot([1])\n1/0")
        assert len(images(ran)) == 1
        assert ran.ended == "error"

    def test_empty_axes_are_not_shown_after_an_error(self, session: PythonRuntime) -> None:
        assert not images(session.do("plt.title('Salaries')\nplt.plot([1], by='department')"))
        assert len(images(session.do("plt.title('Salaries')"))) == 1

    def test_a_figure_that_cannot_be_drawn_is_an_error(self, session: PythonRuntime) -> None:
        ran = session.do("plt.plot([1])\nplt.title(r'$\\\\frac{1$')")
        assert ran.ended == "error"
        assert "Error" in ran.stderr
        assert session.do("plt.get_fignums()").stdout == "[]\n"

    def test_figures_of_another_backend_are_shown(self, session: PythonRuntime) -> None:
        ran = session.do("import matplotlib\nmatplotlib.use('agg')\nplt.plot([1, 2])")
        assert len(images(ran)) == 1

    def test_child_processes_do_not_inherit_our_backend(self, session: PythonRuntime) -> None:
        ran = session.do("import os\nprint(os.environ.get('MPLBACKEND'))")
        assert ran.stdout == "None\n"


def test_figures_include_their_data(session: PythonRuntime) -> None:
    draw = "import matplotlib.pyplot as plt\nplt.plot([1, 2], [3, 4], label='up')\nplt.scatter([5], [6])\nplt.show()"
    (image,) = session.do(draw).of_type("image")
    assert image["data"] == "panel,series,x,y\n1,up,1,3\n1,up,2,4\n1,,5.0,6.0\n"
    (image,) = session.do("plt.barh(['Oslo', 'Bergen'], [2, 1])\nplt.show()").of_type("image")
    assert image["data"] == "panel,series,x,y\n1,,Oslo,2\n1,,Bergen,1\n"
    (image,) = session.do("plt.plot(range(100_000))\nplt.show()").of_type("image")
    assert "data" not in image, "too many points"
