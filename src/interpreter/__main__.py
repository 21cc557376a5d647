"""`python -m interpreter`."""

import sys

from interpreter.terminal.cli import main

sys.exit(main())
