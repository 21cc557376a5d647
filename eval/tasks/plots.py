"""Plots."""

from __future__ import annotations

from pathlib import Path

from eval.outcome import Outcome
from eval.task import Task, nothing, write
from eval.tasks.tables import sales

TEMPERATURES = [11.2, 12.9, 15.1, 14.0, 17.8, 21.3, 19.6, 16.2, 13.4, 18.8, 22.5, 24.1]
SCORES = [35 + number * number * 17 % 64 for number in range(90)]


def _weather(folder: Path) -> None:
    days = (f"2024-05-{day:02},{degrees}" for day, degrees in enumerate(TEMPERATURES, 1))
    write(folder, "weather.csv", "day,temperature", *days)


def _scores(folder: Path) -> None:
    write(folder, "scores.csv", "student,score", *(f"{n},{score}" for n, score in enumerate(SCORES, 1)))


def _weather_drawn(outcome: Outcome) -> None:
    outcome.expect_picture("weather.png")


def _regions_drawn(outcome: Outcome) -> None:
    outcome.expect_picture("regions.png")


def _scores_drawn(outcome: Outcome) -> None:
    outcome.expect_picture("scores.png")


def _sine_drawn(outcome: Outcome) -> None:
    outcome.expect_picture("sine.png", size=(800, 600))


TASKS = [
    Task(
        "plots/line",
        ("Draw the temperature over the days in weather.csv as a line chart and save it as weather.png.",),
        _weather,
        _weather_drawn,
    ),
    Task(
        "plots/bars",
        ("I need a bar chart of the total amount per region from sales.csv. Save it as regions.png.",),
        sales,
        _regions_drawn,
    ),
    Task(
        "plots/histogram",
        ("Make a histogram of the scores in scores.csv with 10 bins and save the picture to scores.png.",),
        _scores,
        _scores_drawn,
    ),
    Task(
        "plots/curve",
        ("Plot sin(x) for x from 0 to 10 and save the picture as sine.png, 800 by 600 pixels.",),
        nothing,
        _sine_drawn,
    ),
]
