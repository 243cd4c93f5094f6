"""HTTP service that filters answers with one filter and monitors its guarantee.

The command ``skdcf serve MODEL`` starts the service. The service stores no texts and calls no
language model.
"""

from ..._checks import import_extra

import_extra("fastapi", "apps")

from ._service import create_app  # noqa: E402

__all__ = ["create_app"]
