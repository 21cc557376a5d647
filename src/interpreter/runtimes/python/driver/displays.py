"""The forms in which a value can be displayed, by MIME type, and matplotlib figures as images."""

from __future__ import annotations

import io
import json
import sys
from binascii import b2a_base64
from types import ModuleType

from .hints import Any, Callable, Sequence
from .imports import ImportWatch, names_of

METHODS = {
    "text/html": "_repr_html_",
    "text/markdown": "_repr_markdown_",
    "image/svg+xml": "_repr_svg_",
    "image/png": "_repr_png_",
    "image/jpeg": "_repr_jpeg_",
    "text/latex": "_repr_latex_",
    "application/json": "_repr_json_",
    "application/javascript": "_repr_javascript_",
}
BACKEND = "module://%s.figures_backend" % __name__.rpartition(".")[0]
PANDAS = (("pandas", "DataFrame"), ("pandas.core.frame", "DataFrame"))  # from version 3 on, and before
DATA_FRAME = (*PANDAS, ("polars.dataframe.frame", "DataFrame"))
MAX_CELLS = 20_000  # of a table's page
MAX_CELL_LENGTH = 1000  # characters
MAX_POINTS = 5000  # of a figure; with more, its data is not sent
MAX_PAGE_LENGTH = 4_000_000
WINDOWLESS = ("agg", "cairo", "pdf", "pgf", "ps", "svg", "template", BACKEND)


def bundle_of(value: Any, png_of_figure: Callable[[Any], bytes | None]) -> dict[str, Any]:
    """Build all forms of a value; `text/plain` is always among them."""
    data: dict[str, Any] = {"text/plain": plain(value)}
    if isinstance(value, type):
        return data
    offered = called(value, "_repr_mimebundle_", include=None, exclude=None)
    if isinstance(offered, dict):
        data.update(offered)
    else:
        for mime, method in METHODS.items():
            form = called(value, method)
            if form is not None:
                data[mime] = form
        if names_of(value).intersection(DATA_FRAME) and "text/html" in data:
            data["text/html"] = called(TablePage, "of", frame=value) or data["text/html"]
    if is_figure(value):
        data["image/png"] = png_of_figure(value)
    return sendable(data)


def called(value: Any, method: str, **arguments: Any) -> Any:
    """Call a rich representation method and return its data; None if it is missing or fails."""
    try:
        function: Callable[..., Any] | None = getattr(value, method, None)
        has_everything = getattr(value, "_no_value_has_this_attribute_", None) is not None  # a mock or a proxy
        if not callable(function) or has_everything:
            return None
        representation = function(**arguments)
    except Exception:  # noqa: BLE001 -- a broken picture of a value must not hide the value
        return None
    return representation[0] if isinstance(representation, tuple) else representation  # (data, metadata)


def is_figure(value: Any) -> bool:
    """Check for a matplotlib figure without importing matplotlib."""
    return ("matplotlib.figure", "Figure") in names_of(value)


def plain(value: Any) -> str:
    try:
        return repr(value)
    except Exception as error:  # noqa: BLE001 -- a user's __repr__ may raise anything
        return "<%s object whose repr() raised %s: %s>" % (type(value).__name__, type(error).__name__, error)


def sendable(data: dict[str, Any]) -> dict[str, Any]:
    """Convert a bundle to text: bytes decoded or in base64, without what JSON cannot represent."""
    whole = {mime: as_text(mime, form) for mime, form in data.items() if form is not None}
    if all(isinstance(form, str) for form in whole.values()):
        return whole
    try:
        json.dumps(whole)
    except (TypeError, ValueError, RecursionError):
        return {mime: form for mime, form in whole.items() if isinstance(form, str)}
    return whole


def as_text(mime: str, form: Any) -> Any:
    if not isinstance(form, bytes):
        return form
    if mime.startswith("text/") or mime.endswith(("+xml", "/json", "/javascript")):
        return form.decode("utf-8", "replace")
    return b2a_base64(form, newline=False).decode()


class TablePage:
    """Renders a table as HTML with up to `most_rows` rows; by default, pandas and polars show far fewer."""

    most_rows = 1000  # the setting `computer.table_rows`

    @classmethod
    def of(cls, frame: Any) -> str | None:
        rows, columns = frame.shape
        most = max(2, min(cls.most_rows, MAX_CELLS // max(1, columns)))
        if not names_of(frame).intersection(PANDAS):
            with sys.modules["polars"].Config(tbl_rows=most, tbl_cols=MAX_CELLS, fmt_str_lengths=MAX_CELL_LENGTH):
                whole: str = frame._repr_html_()
            return whole if len(whole) <= MAX_PAGE_LENGTH else str(frame._repr_html_())
        pandas = sys.modules["pandas"]
        own_rows, own_columns = (pandas.get_option("display.max_" + name) for name in ("rows", "columns"))
        wanted = {"max_rows": most, "min_rows": most, "max_columns": MAX_CELLS, "max_colwidth": MAX_CELL_LENGTH}
        if rows > (own_rows or rows) or columns > (own_columns or columns):
            wanted["show_dimensions"] = True
        options = [part for name, value in wanted.items() for part in ("display." + name, value)]
        with pandas.option_context(*options):
            page: str | None = frame._repr_html_()
        return page if page is None or len(page) <= MAX_PAGE_LENGTH else frame._repr_html_()


class Figures:
    """The open matplotlib figures: shown as images by plt.show() and at the end of a block, then closed."""

    current: Figures | None = None  # the instance that our backend uses

    def __init__(self, display: Callable[[dict[str, Any]], None]) -> None:
        self._display = display
        self._shown: set[int] = set()

    def choose_backend(self, watch: ImportWatch) -> None:
        """Make matplotlib use our backend when it is imported, without importing it now."""

        def use_backend(matplotlib: ModuleType) -> None:
            matplotlib.rcParams["backend"] = BACKEND

        Figures.current = self
        watch.on_import("matplotlib", use_backend)

    def begin(self) -> None:
        self._shown.clear()

    def png(self, figure: Any) -> bytes | None:
        """Draw a figure as PNG, unless it is empty; it is not shown again at the end of the block."""
        self._shown.add(id(figure))
        if not (figure.axes or figure.lines or figure.texts or figure.images or figure.patches):
            return None
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", bbox_inches="tight", dpi=figure.dpi)
        from .figures_backend import with_chart

        return with_chart(buffer.getvalue(), figure)

    def show(self, figure: Any) -> None:
        image = self.png(figure)
        if image is not None:
            data = called(self, "data", figure=figure)
            self._display(sendable({"image/png": image, "text/plain": repr(figure), "text/csv": data}))

    def data(self, figure: Any) -> str | None:
        """Write what lines, points and bars show as CSV; None if there are none, or too many."""
        import csv

        rows: list[tuple[Any, ...]] = []
        for number, axes in enumerate(figure.axes, 1):
            series = [(line.get_label(), line.get_xdata(), line.get_ydata()) for line in axes.lines]
            series += [
                (each.get_label(), *each.get_offsets().T) for each in axes.collections if len(each.get_offsets())
            ]
            for bars in axes.containers:
                lies = getattr(bars, "orientation", "") == "horizontal"
                sizes = [(bar.get_x() + bar.get_width() / 2, bar.get_height()) for bar in getattr(bars, "patches", ())]
                if lies:
                    sizes = [(bar.get_y() + bar.get_height() / 2, bar.get_width()) for bar in bars.patches]
                # The bars of categories are at 0, 1, 2, ...
                names = getattr((axes.yaxis if lies else axes.xaxis).units, "_mapping", {})
                known = {place: name for name, place in names.items()}
                series += (
                    [(bars.get_label(), *zip(*[(known.get(round(at, 6), at), size) for at, size in sizes]))]
                    if sizes
                    else []
                )
            for label, across, up in series:
                name = "" if str(label).startswith("_") else label
                if len(rows) + len(up) > MAX_POINTS:
                    return None
                rows += [(number, name, *pair) for pair in zip(across, up)]
        if not rows:
            return None
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([("panel", "series", "x", "y"), *rows])
        return text.getvalue()

    def show_open(self, older: Sequence[Any] = (), failed: bool = False) -> None:
        """Show the open figures, except for these older ones, and close them; after an error, only those with data."""
        figures = [figure for figure in self.open() if figure not in older]
        try:
            for figure in figures:
                if id(figure) not in self._shown and (not failed or any(axes.has_data() for axes in figure.axes)):
                    self.show(figure)
        finally:
            for figure in figures:
                sys.modules["matplotlib.pyplot"].close(figure)

    def open(self) -> list[Any]:
        """List the figures that pyplot holds, unless they have their own windows."""
        helpers = sys.modules.get("matplotlib._pylab_helpers")
        if helpers is None or "matplotlib.pyplot" not in sys.modules:
            return []
        figures = [manager.canvas.figure for manager in helpers.Gcf.get_all_fig_managers()]
        if figures and sys.modules["matplotlib"].get_backend().lower() not in WINDOWLESS:
            return []
        return figures
