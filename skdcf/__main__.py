"""Command-line program as a module: ``python -m skdcf``."""

import sys

from .apps.cli import main

if __name__ == "__main__":
    sys.exit(main())
