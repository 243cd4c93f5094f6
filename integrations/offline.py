"""No telemetry and no network: imported before anything that might want either."""

import os
import socket
from importlib.metadata import version

os.environ |= {
    "LANGSMITH_TRACING": "false",
    "LANGCHAIN_TRACING_V2": "false",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "RAGAS_DO_NOT_TRACK": "true",
    "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
    "DEEPEVAL_UPDATE_WARNING_OPT_IN": "0",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
}
attempts = []


def print_versions(*packages):
    """Print with what an example was run."""
    print(", ".join(f"{name} {version(name)}" for name in ("skdcf", *packages)))


def refuse(self, address):
    """Stand for `socket.connect`: nothing is connected, and who tried is remembered."""
    attempts.append(address)
    raise OSError(f"no network here, but {address} was to be reached")


socket.socket.connect = refuse
socket.socket.connect_ex = refuse


def finish(*packages):
    """Say with which versions an example ran, and fail where the network was tried."""
    names = ", ".join(f"{name} {version(name)}" for name in packages)
    print(f"with {names}; nothing was to be reached over the network")
    assert attempts == [], attempts
