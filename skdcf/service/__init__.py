"""A small service that filters answers over HTTP, and watches over what it promised.

``skdcf serve MODEL`` starts it. It calls no language model and keeps no text.
"""

from ._app import create_app

__all__ = ["create_app"]
