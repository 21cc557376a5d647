"""matplotlib figures: shown as images by plt.show() and at the end of a block, then closed."""

from __future__ import annotations

import io
import sys
from binascii import b2a_base64

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Callable, Dict, List, Optional, Sequence, Set

    from .imports import ImportWatch

BACKEND = "module://%s.figures_backend" % __name__.rpartition(".")[0]
WINDOWLESS = ("agg", "cairo", "pdf", "pgf", "ps", "svg", "template", BACKEND)


class Figures:
    """The open figures of the session."""

    current: Optional[Figures] = None  # the one that our backend shows through

    def __init__(self, display: Callable[[Dict[str, Any]], None]) -> None:
        self._display = display
        self._shown: Set[int] = set()

    def choose_backend(self, watch: ImportWatch) -> None:
        """Have matplotlib use our backend from the moment it is imported, without importing it."""
        Figures.current = self
        watch.on_import("matplotlib", use_backend)

    def begin(self) -> None:
        self._shown.clear()

    def png(self, figure: Any) -> Optional[bytes]:
        """A figure as an image, if it is not empty; it is not shown again at the end of the block."""
        self._shown.add(id(figure))
        if not (figure.axes or figure.lines or figure.texts or figure.images or figure.patches):
            return None
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", bbox_inches="tight", dpi=figure.dpi)
        return buffer.getvalue()

    def show(self, figure: Any) -> None:
        image = self.png(figure)
        if image is not None:
            encoded = b2a_base64(image, newline=False).decode()
            self._display({"image/png": encoded, "text/plain": repr(figure)})

    def show_open(self, older: Sequence[Any] = ()) -> None:
        """Show the figures that are open, except for these older ones, and close them."""
        figures = [figure for figure in self.open() if figure not in older]
        try:
            for figure in figures:
                if id(figure) not in self._shown:
                    self.show(figure)
        finally:
            for figure in figures:
                sys.modules["matplotlib.pyplot"].close(figure)

    def open(self) -> List[Any]:
        """Figures that pyplot holds, unless they have windows of their own."""
        helpers = sys.modules.get("matplotlib._pylab_helpers")
        if helpers is None or "matplotlib.pyplot" not in sys.modules:
            return []
        figures = [manager.canvas.figure for manager in helpers.Gcf.get_all_fig_managers()]
        if figures and sys.modules["matplotlib"].get_backend().lower() not in WINDOWLESS:
            return []
        return figures


def use_backend(matplotlib: ModuleType) -> None:
    matplotlib.rcParams["backend"] = BACKEND
