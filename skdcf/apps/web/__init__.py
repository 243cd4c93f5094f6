"""Guard, error responses and server that are shared by the service and the labelling page."""

from ..._checks import import_extra

for _package in ("fastapi", "uvicorn"):
    import_extra(_package, "apps")
