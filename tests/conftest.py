"""Where the tests find data, and how they behave the same on every machine."""

import gc
import hashlib
import json
import os
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import settings

os.environ.setdefault("MPLBACKEND", "Agg")

CHECKOUT = Path(__file__).resolve().parent.parent

# Programs for the type checker, some of which are wrong, and programs of `make attacks`.
collect_ignore = ["typing", "attacks"]

# The machine that runs the tests may be slow, and a failure has to come back.
settings.register_profile("skdcf", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("skdcf")


def pytest_collection():
    """What 6,000 tests consist of is not looked through for garbage again and again."""
    gc.disable()


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items):
    """A test with a browser is a long one."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.long)


@pytest.fixture(scope="session")
def checkout():
    """The root of the repository."""
    return CHECKOUT


@pytest.fixture(scope="session")
def data_home():
    """The folder with the published data; without it the test is skipped."""
    folder = os.environ.get("SKDCF_DATA")
    if not folder:
        pytest.skip("no real data: SKDCF_DATA, the folder that holds it, is not set")
    if not Path(folder, "coherent_factuality").is_dir():
        pytest.skip(f"no real data: SKDCF_DATA={folder} has no coherent_factuality/")
    return Path(folder)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Put a made-up file in a data directory in the place of a published one."""
    # Not at the top: the process that hands out the tests loads this file as well.
    from skdcf.datasets.fetch import SOURCES

    def put(name, content, lines=False):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        content = content if lines else [content]
        path.write_text("\n".join(map(json.dumps, content)) + "\n", encoding="utf-8")
        checksum = hashlib.sha256(path.read_bytes()).hexdigest()
        monkeypatch.setitem(SOURCES, name, ("http://127.0.0.1:9/none", checksum))
        return tmp_path

    return put


@pytest.fixture
def model(monkeypatch):
    """A function that serves scripted replies, and returns the server and a client for it."""
    pytest.importorskip("openai", reason="the openai client is not installed")
    from chat_server import ChatServer

    from skdcf.apps.llm import ChatClient, _model

    monkeypatch.setattr(_model, "back_off", lambda n: 0.01)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-0123456789-abcdef")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with ExitStack() as stack:

        def serve(script, **options):
            server = stack.enter_context(ChatServer(script))
            return server, ChatClient(server.url, **options)

        yield serve
