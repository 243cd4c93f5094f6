"""Run the command-line program with ``python -m skdcf``."""

import sys

from .apps.cli import main

if __name__ == "__main__":
    sys.exit(main())
