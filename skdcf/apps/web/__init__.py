"""The guard, error responses and server, which the service and the labelling page share."""

from ..._checks import import_extra

for _package in ("fastapi", "uvicorn"):
    import_extra(_package, "apps")
