"""Disable telemetry and network access. Import this module before all other packages."""

import os
import socket
from importlib.metadata import version

os.environ |= {
    "LANGSMITH_TRACING": "false",
    "LANGCHAIN_TRACING_V2": "false",
    "RAGAS_DO_NOT_TRACK": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
}
attempts = []


def print_versions(*packages):
    """Print the package versions of an example."""
    print(", ".join(f"{name} {version(name)}" for name in ("skdcf", *packages)))


def refuse(self, address):
    """Replace `socket.connect`: record the address and raise an error."""
    attempts.append(address)
    raise OSError(f"network access is disabled, got a connection to {address}")


socket.socket.connect = refuse
socket.socket.connect_ex = refuse


def finish(*packages):
    """Print the package versions, and fail if the example tried to use the network."""
    names = ", ".join(f"{name} {version(name)}" for name in packages)
    print(f"with {names}, without network access")
    assert attempts == [], attempts
