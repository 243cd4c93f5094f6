"""HTTP service that filters answers and monitors the guarantee.

The command ``skdcf serve MODEL`` starts the service. The service stores no texts and calls no
language model.
"""

from ..._checks import import_extra

import_extra("fastapi", "apps")

from ._app import Service, create_app  # noqa: E402
from ._log import JsonFormatter as JsonFormatter  # noqa: E402

__all__ = ["Service", "create_app"]
