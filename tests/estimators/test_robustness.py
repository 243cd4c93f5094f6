"""Short runs of the programs in tests/attacks."""

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


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked and killed")
@pytest.mark.parametrize(
    "program", [("fuzz", "--inputs", "800"), ("kills", "--kills", "2")]
)
def test_short_runs_of_the_attacks(program):
    pytest.importorskip("openai")
    name, *arguments = program
    command = [sys.executable, ROOT / "tests/attacks" / f"{name}.py", *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr


class Odd(Scorer):
    """Gives one claim no number."""

    def confidence(self, batch):
        return np.where(batch.features[:, 0] > 0.9, np.nan, 0.5)


def test_a_single_confidence_that_is_no_number_is_refused():
    X = one_claim_each([0.1, 0.95, *np.linspace(0, 0.8, 30)])
    with pytest.raises(ValueError, match=r"finite.*nan.*problem 1, claim 0"):
        HardCF(Odd(), alpha=0.2).fit(X, [[0]] * 32)
