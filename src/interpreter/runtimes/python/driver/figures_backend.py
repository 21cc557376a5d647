"""A matplotlib backend without windows: figures are drawn by Agg and shown as images.

The images also contain what the lines, points and bars show, for terminals that draw charts with characters.
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from itertools import islice
from typing import Any, Iterator

import numpy
from matplotlib.backend_bases import FigureManagerBase
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex, to_rgba_array

from .displays import Figures
from .imports import names_of

KEYWORD = b"Interpreter-Chart"  # of the PNG's text chunk with the chart
MAX_PANELS, MAX_SERIES, MAX_TICKS = 6, 60, 200
MAX_READ = 50_000  # points of a scatter plot
MAX_POINTS = 400  # of a line, and bars of a series
MAX_DOTS = 1500  # of a scatter plot
DRAWN = {"LineCollection", "PolyCollection", "Polygon", "Rectangle", "PathPatch"}
SCALE = 1000  # positions are thousandths of the panel's width and height


class FigureManager(FigureManagerBase):
    def show(self) -> None:
        if Figures.current is not None:
            Figures.current.show(self.canvas.figure)


class FigureCanvas(FigureCanvasAgg):  # type: ignore[misc]
    manager_class = FigureManager


def show(*args: Any, **kwargs: Any) -> None:
    if Figures.current is not None:
        Figures.current.show_open()


# -- charts ------------------------------------------------------------------------------------------------------


def with_chart(png: bytes, figure: Any) -> bytes:
    """Add the figure's chart to a PNG, as text that other programs ignore. Other figures stay unchanged."""
    try:
        text = json.dumps({"panels": panels(figure)}, separators=(",", ":"))
    except Exception:  # noqa: BLE001 -- a figure of another kind, or a matplotlib that we don't know
        return png
    body = b"zTXt" + KEYWORD + b"\0\0" + zlib.compress(text.encode())
    header = 33  # bytes
    return png[:header] + struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body)) + png[header:]


def panels(figure: Any) -> list[dict[str, Any]]:
    """Describe what each of the axes shows. Raises ValueError if one of them can't be drawn with characters."""
    shown = [panel(axes) for axes in figure.axes if axes.get_visible() and not getattr(axes, "_colorbar", None)]
    if not any(each["series"] for each in shown) or len(shown) > MAX_PANELS:
        raise ValueError("nothing to draw, or too much")
    if figure._suptitle is not None:
        shown[0]["title"] = " - ".join(filter(None, [plain(figure._suptitle.get_text()), shown[0]["title"]]))
    return shown


def panel(axes: Any) -> dict[str, Any]:
    drawn = list(islice(artists(axes), MAX_SERIES + 1))
    if axes.name != "rectilinear" or axes.images or len(drawn) > MAX_SERIES:
        raise ValueError("no text form")
    legend = axes.get_legend()
    handles = zip(legend.legend_handles, legend.get_texts()) if legend is not None else ()
    named = {color_of(handle): text.get_text() for handle, text in handles}  # seaborn labels only these artists
    series = []
    for artist, kind, color, at in drawn:
        name = str(artist.get_label())
        name = plain(named.get(color, "") if name.startswith("_") else name)
        series.append({"kind": kind, "name": name, "color": color, "at": at})
    titles = [plain(axes.get_title(place)) for place in ("center", "left", "right")]
    shown = {"title": next(filter(None, titles), ""), "series": series}
    for way, axis in enumerate((axes.xaxis, axes.yaxis)):
        unit = plain(axis.get_offset_text().get_text())  # such as 1e6
        ticks = [
            (at[way], plain(label.get_text()))
            for is_minor in (False, True)
            for place, label in zip(axis.get_ticklocs(minor=is_minor), axis.get_ticklabels(minor=is_minor))
            for at in placed(axes, axes.transData, [(place, place)])
            if at and 0 <= at[way] <= SCALE and label.get_text()
        ]
        name = plain(axis.get_label_text())
        shown["xy"[way]] = "%s (%s)" % (name, unit) if unit else name
        shown["xy"[way] + "_ticks"] = sorted(ticks)[:MAX_TICKS]
    return shown


def plain(text: str) -> str:
    """Remove formula marks from a label: `$\\mathdefault{10^{3}}$` becomes `10^3`."""
    if text.count("$") > 1:
        text = re.sub(r"\\(?:mathdefault|mathrm|mathbf|mathit|text)\b|[{}$]", "", text)
    return " ".join(text.replace("\\$", "$").replace("\u2212", "-").split())[:200]


def color_of(artist: Any) -> str:
    """Return an artist's main colour as `#rrggbb`; empty for black, grey and white."""
    own = ("get_color", "get_facecolor", "get_edgecolor")
    values = [to_rgba_array(getattr(artist, name, list)()) for name in own]
    color = next((value[0] for value in values if len(value) and value[0][3]), (0, 0, 0))
    return "" if len(set(color[:3])) == 1 else str(to_hex(color))


def artists(axes: Any) -> Iterator[tuple[Any, str, str, list[Any]]]:
    in_bars: set[int] = set()
    for bars in axes.containers:
        lies, boxes = getattr(bars, "orientation", "") == "horizontal", []
        for patch in getattr(bars, "patches", ())[:MAX_POINTS]:
            (left, bottom), (right, top) = patch.get_bbox().get_points()
            corners = placed(axes, axes.transData, [(left, bottom), (right, top)])
            in_bars.add(id(patch))
            if all(corners):
                size = float(right - left if lies else top - bottom)
                boxes.append((*corners[0], *corners[1], "{:,.6g}".format(size)))
        if boxes:
            yield bars, "rows" if lies else "bars", color_of(bars.patches[0]), boxes
    for line in axes.lines:
        none = ("None", "", " ", None)
        if line.get_linestyle() not in none or line.get_marker() not in none:
            kind = "points" if line.get_linestyle() in none else "line"
            yield line, kind, color_of(line), placed(axes, line.get_transform(), line.get_xydata())
    for artist in [*axes.collections, *(patch for patch in axes.patches if id(patch) not in in_bars)]:
        kinds = {name for _, name in names_of(artist)}
        if "PathCollection" in kinds:
            offsets, colors = artist.get_offsets(), artist.get_facecolor()
            groups = {color_of(artist): slice(None)}
            if len(colors) == len(offsets) and artist.get_array() is None:
                distinct = set(map(tuple, colors.tolist()))
                if len(distinct) <= 10:
                    groups = {to_hex(color): (colors == color).all(axis=1) for color in distinct}
            for color, own in groups.items():
                at = dict.fromkeys(
                    placed(axes, artist.get_offset_transform(), offsets[own][:: 1 + len(offsets) // MAX_READ], (4, 8))
                )  # precise enough
                yield artist, "points", color, list(at)[:: 1 + len(at) // MAX_DOTS]
        elif not kinds & DRAWN or getattr(artist, "get_array", str)() not in (None, ""):
            raise ValueError("no text form")
        elif "PolyCollection" not in kinds or not axes.lines or (artist.get_alpha() or 1) > 0.5:  # not a pale band
            for path in artist.get_paths() if hasattr(artist, "get_paths") else [artist.get_path()]:
                yield artist, "line", color_of(artist), placed(axes, artist.get_transform(), path.vertices)


def placed(axes: Any, transform: Any, points: Any, steps: tuple[int, int] = (1, 1)) -> list[Any]:
    """Convert points to thousandths of the panel; None where there is no value, which interrupts a line.

    Many points are thinned out with steps of 1: the lowest and the highest of each part stay, so no peak is lost.
    """
    points = numpy.ma.filled(numpy.ma.asarray(points, dtype=float), numpy.nan)
    inside = (transform - axes.transAxes).transform(points) * SCALE
    if len(inside) > MAX_POINTS and steps == (1, 1):
        parts, last = MAX_POINTS // 2, len(inside) - 1
        places = numpy.minimum(numpy.arange(parts * -(-len(inside) // parts)), last).reshape(parts, -1)
        heights = inside[places, 1]
        ends = numpy.sort([heights.argmin(axis=1), heights.argmax(axis=1)], axis=0)
        inside = inside[places[numpy.arange(parts), ends].T.ravel()]
    whole = (numpy.clip(numpy.nan_to_num(inside), -SCALE, 2 * SCALE) / steps).round().astype(int) * steps
    known = numpy.isfinite(inside).all(axis=1).tolist()
    return [tuple(place) if is_known else None for place, is_known in zip(whole.tolist(), known)]
