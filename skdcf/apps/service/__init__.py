"""HTTP service that filters answers and monitors the guarantee.

The command ``skdcf serve MODEL`` starts the service. The service stores no texts except those of
open runs, and calls a language model only if ``--base-url`` is set.
"""

from ..._checks import import_extra

for package in ("fastapi", "prometheus_client"):
    import_extra(package, "apps")

from ._app import Service, create_app  # noqa: E402
from ._metrics import JsonFormatter as JsonFormatter  # noqa: E402

__all__ = ["Service", "create_app"]
