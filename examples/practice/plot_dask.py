"""
A cluster with a killed worker
==============================

This example calibrates on a JSON Lines file and filters it in parts, first in a single process
and then on a local dask cluster. One worker of the cluster is killed during the computation. The
thresholds and masks are identical. The example needs the extra ``dask``.
"""

# %%
# A file and a filter
# -------------------

import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import skdcf
from skdcf.datasets import jsonl_partitions, make_reasoning_graphs, write_jsonl

folder = tempfile.TemporaryDirectory()
graphs, labels = make_reasoning_graphs(2000, random_state=0, return_X_y=True)
path = write_jsonl(Path(folder.name) / "problems.jsonl", graphs, labels)
cf = skdcf.HardCF("frequency-score").fit(graphs[:200], labels[:200])
saved = skdcf.save(cf, Path(folder.name) / "filter.skops")

# %%
# A single process
# ----------------

parts = jsonl_partitions(path, n_problems=100)
read = [part.read() for part in parts]
cf.calibrate_parts([cf.calibration_part(data.graphs, data.labels) for data in read])
here = np.concatenate([row for data in read for row in cf.predict(data.graphs)])
print(f"{len(parts)} parts, threshold {cf.threshold_:.6f}, {here.mean():.1%} kept")

# %%
# A cluster
# ---------
# This is a separate program, as in a real application. One worker kills itself while it scores a
# part. dask starts another worker and scores the lost parts again.

program = Path(folder.name) / "on_cluster.py"
program.write_text(
    textwrap.dedent(
        """
        import os, signal, sys, time
        from pathlib import Path

        import joblib, numpy as np, skdcf
        from dask.distributed import Client, LocalCluster
        from joblib import Parallel, delayed
        from skdcf.datasets import jsonl_partitions

        class Deadly:
            "A part whose first reader dies."

            def __init__(self, part, mark):
                self.part, self.mark = part, mark

            def read(self):
                if not os.path.exists(self.mark):
                    Path(self.mark).write_text(str(os.getpid()))
                    os.kill(os.getpid(), signal.SIGKILL)
                return self.part.read()

        def scored(cf, part):
            data = part.read()
            return cf.calibration_part(data.graphs, data.labels)

        def filtered(cf, part):
            return cf.predict(part.read().graphs)

        def main(path, saved, out):
            parts, cf = jsonl_partitions(path, 100), skdcf.load(saved)
            parts[7] = Deadly(parts[7], out + ".killed")
            where = dict(n_workers=2, threads_per_worker=1, dashboard_address=None)
            with LocalCluster(**where) as cluster, Client(cluster):
                with joblib.parallel_config(backend="dask"):
                    found = Parallel()(delayed(scored)(cf, part) for part in parts)
                    cf.calibrate_parts(found)
                    masks = Parallel()(delayed(filtered)(cf, part) for part in parts)
            flat = np.concatenate([row for part in masks for row in part])
            np.savez(out, masks=flat, threshold=cf.threshold_)

        if __name__ == "__main__":
            main(*sys.argv[1:])
        """
    )
)
out = str(Path(folder.name) / "out.npz")
command = [sys.executable, str(program), str(path), str(saved), out]
done = subprocess.run(command, check=True, stderr=subprocess.DEVNULL, timeout=300)

# %%
# Comparison
# ----------

with np.load(out, allow_pickle=False) as there:
    same_threshold = float(there["threshold"]) == cf.threshold_
    same_masks = np.array_equal(there["masks"], here)
killed = Path(out + ".killed").read_text()
print(f"worker {killed} was killed; threshold {same_threshold}, masks {same_masks}")
assert same_threshold and same_masks

# %%
# Each part contributes one score per problem, and the threshold is one of these scores.

fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
scores = cf.nonconformity_scores_[np.isfinite(cf.nonconformity_scores_)]
ax.plot(scores, np.arange(1, len(scores) + 1), drawstyle="steps-post")
ax.axvline(cf.threshold_, color="k", ls="--", lw=1, label="threshold")
ax.set(xlabel="nonconformity score", ylabel="problems up to it, of 2,000")
ax.legend(frameon=False)
folder.cleanup()
