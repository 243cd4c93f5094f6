"""Short runs of the programs in tests/attacks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked and killed")
@pytest.mark.parametrize(
    "program", [("fuzz", "--inputs", "400"), ("kills", "--kills", "1")]
)
def test_short_runs_of_the_attacks(program):
    pytest.importorskip("openai")
    name, *arguments = program
    command = [sys.executable, ROOT / "tests/attacks" / f"{name}.py", *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
