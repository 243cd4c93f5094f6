"""Shared code of the service and the labelling page: guard, error responses and server."""

from ..._checks import import_extra

for _package in ("fastapi", "uvicorn"):
    import_extra(_package, "apps")
