"""The program as a module: ``python -m skdcf``."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
