"""One short chat."""

from common import report, warmed

warmed()
report()
