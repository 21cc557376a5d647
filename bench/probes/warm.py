"""One short chat."""

from common import tell, warmed

warmed()
tell()
