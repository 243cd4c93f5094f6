"""An HTTP service that filters answers and monitors the guarantee.

``skdcf serve MODEL`` starts it. It stores no text except that of open runs, and it calls a
language model only with ``--base-url``.
"""

from ..._checks import import_extra

for package in ("fastapi", "prometheus_client"):
    import_extra(package, "apps")

from ._app import Service, create_app  # noqa: E402
from ._metrics import JsonFormatter as JsonFormatter  # noqa: E402

__all__ = ["Service", "create_app"]
