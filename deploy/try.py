"""Test the Dockerfile and the systemd unit without a container runtime or systemd.

The wheel is built and installed into a new environment, as in the Dockerfile. The entry point
of the Dockerfile and the command of the unit are read from these files and run with other
paths and ports. If root runs this program and the interpreter is not in root's home, the
commands run as the user nobody. The program checks that the health check succeeds, that a
request is refused with a wrong token and answered with the right token, that the service
survives a reload, and that it stops with status 0.
"""

import http.client
import json
import os
import pwd
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOKEN = "a-secret-for-this-trial"
MAKE_FILTER = """
import sys, skdcf
from skdcf.datasets import make_reasoning_graphs, write_jsonl
graphs, y = make_reasoning_graphs(200, random_state=0, return_X_y=True)
skdcf.save(skdcf.HardCF("frequency-score", alpha=0.2).fit(graphs, y), sys.argv[1])
write_jsonl(sys.argv[2], graphs[:1])
"""


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        run = subprocess.check_call
        run([sys.executable, "-m", "build", "--wheel", "--outdir", folder, HERE.parent])
        (wheel,) = folder.glob("skdcf-*.whl")
        run([sys.executable, "-m", "venv", folder / "venv"])
        python = folder / "venv/bin/python"
        run([python, "-m", "pip", "install", "--quiet", f"{wheel}[apps]"])
        made = folder / "filter.skops", folder / "answer.jsonl"
        run([python, "-c", MAKE_FILTER, *made], cwd=folder)
        (folder / "filter.skops").chmod(0o644)
        for name, command, check in (container(folder), unit(folder)):
            try_service(name, command, check, folder)


def container(folder):
    """Return the command of the Dockerfile and its health check."""
    text = (HERE / "Dockerfile").read_text().replace("\\\n", " ")
    lines = dict(re.findall(r"^(ENTRYPOINT|CMD|USER) (.*)$", text, re.MULTILINE))
    check = re.search(r"^HEALTHCHECK .*CMD (\[.*\])$", text, re.MULTILINE)[1]
    assert lines["USER"] != "0", "the container runs as root"
    command = json.loads(lines["ENTRYPOINT"]) + json.loads(lines["CMD"])
    return "Dockerfile", command, json.loads(check)


def unit(folder):
    """Return the command of the unit and the health check of the container."""
    text = (HERE / "skdcf@.service").read_text()
    keys = dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))
    assert keys["EnvironmentFile"] and keys["User"] == "skdcf"
    return "skdcf@.service", shlex.split(keys["ExecStart"]), container(folder)[2]


def try_service(name, command, check, folder):
    """Start a service, send requests, reload the service and stop it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    journal = folder / f"journal-{port}"
    journal.mkdir()
    replaced = {
        "8000": str(port),
        "%i": str(port),
        "/var/lib/skdcf": str(journal),
        "/srv/filter.skops": str(folder / "filter.skops"),
        "/etc/skdcf/filter.skops": str(folder / "filter.skops"),
        "0.0.0.0": "127.0.0.1",
    }
    command = [replaced.get(part, part) for part in command]
    command[0] = str(folder / "venv/bin/skdcf")
    check = [part.replace(":8000", f":{port}") for part in check]
    check[0] = str(folder / "venv/bin/python")
    options = {}
    if os.getuid() == 0 and may_be_run_by_others(sys.base_prefix):
        nobody = pwd.getpwnam("nobody")
        os.chown(journal, nobody.pw_uid, nobody.pw_gid)
        options = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    environment = os.environ | {"SKDCF_TOKEN": TOKEN, "HOME": str(journal)}
    process = subprocess.Popen(command, cwd=journal, env=environment, **options)
    try:
        wait_until_healthy(process, check)
        body = (folder / "answer.jsonl").read_bytes()
        for token, status in (("wrong", 401), (TOKEN, 200)):
            assert ask(port, body, token) == status, (token, status)
        process.send_signal(signal.SIGHUP)
        time.sleep(2)
        assert ask(port, body, TOKEN) == 200
        process.terminate()
        status = process.wait(timeout=40)
        assert status in (0, -signal.SIGTERM), status
    finally:
        process.kill()
    assert (journal / "journal.sqlite").stat().st_mode & 0o777 == 0o600
    print(f"{name}: healthy, refuses a wrong token, reloads, and stops")


def may_be_run_by_others(path):
    """Return whether other users can access the interpreter."""
    folders = [Path(path).resolve(), *Path(path).resolve().parents]
    return all(folder.stat().st_mode & 0o001 for folder in folders)


def wait_until_healthy(process, check):
    """Wait until the health check succeeds."""
    end = time.monotonic() + 120
    while subprocess.run(check, stderr=subprocess.DEVNULL).returncode:
        assert process.poll() is None, "the service has ended"
        assert time.monotonic() < end, "the service does not become healthy"
        time.sleep(0.5)


def ask(port, body, token):
    """Return the status of the reply to a request."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    try:
        connection.request("POST", "/v1/filter", body, headers)
        return connection.getresponse().status
    finally:
        connection.close()


if __name__ == "__main__":
    main()
