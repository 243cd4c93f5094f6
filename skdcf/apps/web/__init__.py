"""What the service and the labelling page have in common: guard, refusals, server."""

from ..._checks import import_extra

for _package in ("fastapi", "uvicorn"):
    import_extra(_package, "apps")
