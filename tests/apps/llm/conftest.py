"""The fixture of all tests of the language model: a client for scripted replies over HTTP."""

from contextlib import ExitStack

import pytest

pytest.importorskip("openai", reason="the openai client is not installed")

from chat_server import ChatServer

from skdcf.apps.llm import ChatClient, _model

KEY = "sk-secret-0123456789-abcdef"


@pytest.fixture
def model(monkeypatch):
    """A function that serves a script, and returns the server and a client for it."""
    monkeypatch.setattr(_model, "back_off", lambda n: 0.01)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with ExitStack() as stack:

        def serve(script, **options):
            server = stack.enter_context(ChatServer(script))
            return server, ChatClient(server.url, **options)

        yield serve
