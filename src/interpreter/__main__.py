"""`python -m interpreter`."""

import sys

from interpreter.frontends.terminal.cli import main

sys.exit(main())
