"""A small service that filters answers over HTTP, and watches over what it promised.

``skdcf serve MODEL`` starts it. It keeps no text but that of runs that are open, and calls
a language model only with ``--base-url``.
"""

from ._app import Service, create_app
from ._counts import JsonFormatter as JsonFormatter

__all__ = ["Service", "create_app"]
