"""No telemetry and no network: imported before anything that might want either."""

import os
import socket

os.environ |= {
    "LANGSMITH_TRACING": "false",
    "LANGCHAIN_TRACING_V2": "false",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
}
attempts = []


def refuse(self, address):
    """Stand for `socket.connect`: nothing is connected, and who tried is remembered."""
    attempts.append(address)
    raise OSError(f"no network here, but {address} was to be reached")


socket.socket.connect = refuse
socket.socket.connect_ex = refuse
