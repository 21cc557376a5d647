"""A matplotlib backend without windows: figures are drawn by Agg and shown as images."""

from __future__ import annotations

from typing import Any

from matplotlib.backend_bases import FigureManagerBase
from matplotlib.backends.backend_agg import FigureCanvasAgg

from .displays import Figures


class FigureManager(FigureManagerBase):
    def show(self) -> None:
        if Figures.current is not None:
            Figures.current.show(self.canvas.figure)


class FigureCanvas(FigureCanvasAgg):  # type: ignore[misc]
    manager_class = FigureManager


def show(*args: Any, **kwargs: Any) -> None:
    """What plt.show() does."""
    if Figures.current is not None:
        Figures.current.show_open()
