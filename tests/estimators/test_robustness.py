"""Short runs of the programs in tests/attacks/ that kill what writes and break what is read."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from one_claim import one_claim_each

from skdcf import HardCF
from skdcf.scorers import Scorer

ROOT = Path(__file__).resolve().parents[2]
ATTACKS = ROOT / "tests" / "attacks"
FOUND = ROOT / "benchmarks" / "results" / "fuzz.json"


def run(name, *arguments):
    command = [sys.executable, ATTACKS / f"{name}.py", *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=900, env=environment
    )


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked and killed")
def test_nothing_half_written_is_trusted():
    pytest.importorskip("skops")
    done = run("kills", "--kills", "2", "--seed", "1", "--only", "functions")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "two downloads of one file at once: both succeed" in done.stdout
    assert done.stdout.count("kills") == 3


@pytest.mark.long
def test_broken_input_is_refused(tmp_path):
    pytest.importorskip("skops")
    out = tmp_path / "fuzz.json"
    first = run("fuzz", "--inputs", "500", "--output", str(out))
    assert first.returncode == 0, first.stdout + first.stderr
    before = json.loads(out.read_text())
    assert sum(t["done"] for t in before["targets"].values()) == 500
    again = run("fuzz", "--inputs", "600", "--output", str(out))
    after = json.loads(out.read_text())
    assert again.returncode == 0
    for name, target in after["targets"].items():
        assert target["done"] == int(1.2 * before["targets"][name]["done"])
        assert target["taken"] + target["refused"] == target["done"]


@pytest.mark.long
def test_fuzz_notices(tmp_path):
    """An error that is not documented, and a process that ends, are both faults."""
    program = tmp_path / "broken.py"
    program.write_text(
        "import os, sys\n"
        f"sys.path.insert(0, {str(ATTACKS)!r})\n"
        "import fuzz\n"
        "class Broken:\n"
        "    def __init__(self, folder):\n"
        "        self.n = 0\n"
        "    def run(self, rng):\n"
        "        self.n += 1\n"
        "        if self.n == 3:\n"
        "            raise KeyError('undocumented')\n"
        "        if self.n == 700:\n"
        "            os._exit(11)\n"
        "fuzz.TARGETS = {'broken': (Broken, 1.0, (ValueError,))}\n"
        f"sys.argv[1:] = ['--inputs', '1500', '--output', {str(tmp_path / 'f.json')!r}]\n"
        "sys.exit(fuzz.main())\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, program]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 1, done.stderr
    assert "KeyError: 'undocumented'" in done.stdout
    assert "exit 11" in done.stdout


@pytest.mark.skipif(not FOUND.exists(), reason="not run in this checkout")
def test_what_a_million_inputs_did():
    found = json.loads(FOUND.read_text())["targets"]
    assert all(target["faults"] == [] for target in found.values())


@pytest.mark.long
@pytest.mark.skipif(os.name != "posix", reason="kills of POSIX")
def test_commands_that_are_killed_leave_nothing_half_written():
    pytest.importorskip("openai")
    done = run("kills", "--kills", "1", "--seed", "2", "--only", "commands")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("1 kills, nothing wrong") == 6


class Odd(Scorer):
    """Gives one claim no number."""

    def confidence(self, batch):
        return np.where(batch.features[:, 0] > 0.9, np.nan, 0.5)


def test_a_single_confidence_that_is_no_number_is_refused():
    X = one_claim_each([0.1, 0.95, *np.linspace(0, 0.8, 30)])
    with pytest.raises(ValueError, match=r"finite.*nan.*problem 1, claim 0"):
        HardCF(Odd(), alpha=0.2).fit(X, [[0]] * 32)
