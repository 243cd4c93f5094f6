"""Training per iteration against PyTorch: padded to the longest problem, and graph by graph.

    SKDCF_DATA=... python benchmarks/padded_torch.py

Needs torch, which nothing else here does. All times are those of one processor in one run, so
that their ratios do not depend on the machine. An iteration of this package is the time of
``CoherentConformalFilter("linear").fit`` over the number of steps, checks, start and
calibration included; one of PyTorch is an epoch of Adam and nothing else.

The problems are the 459 of PERL from MetaMathQA and Orca-Math, where the data folder has
them. Otherwise as many of the same sizes are drawn from the other two sources, none with
more than 22 claims: the longest of the 459 has as many, so padding costs the same.

Seen in seven runs, of which single ones differ much: padded PyTorch takes 4.7 times the grid
(the median; 3.6 to 7.3) in double precision, which is the one used here, and 6.2 times (4.0
to 7.8) in single; graph by graph it takes 147 times the grid and 450 times the path.
"""

import time
import warnings

import numpy as np
import torch
from torch.nn.functional import logsigmoid

from skdcf import CoherentConformalFilter, GraphBatch
from skdcf.datasets import fetch_perl
from skdcf.features import reasoning_features
from skdcf.graphs import pack_labels
from skdcf.ops.conformal import conformal_rank
from skdcf.relaxation import GridRelaxation, PathRelaxation
from skdcf.training import LBFGS, SoftTraining
from skdcf.training.splitting import Standardizer

ALPHA, N_TRAIN, N_CALIBRATE, LONGEST = 0.1, 459, 9, 22


def problems():
    """A batch with features, and its labels; nine problems more than are trained on."""
    try:
        sources = ("metamathqa", "orcamath")
        batch, y = fetch_perl(sources, return_X_y=True, download_if_missing=False)
        rows = np.arange(N_TRAIN + N_CALIBRATE) % len(batch)
        print("PERL, MetaMathQA and Orca-Math", end=": ")
    except OSError:
        batch, y = fetch_perl(return_X_y=True)
        short = np.flatnonzero(batch.sizes <= LONGEST)
        rows = np.random.RandomState(0).choice(short, N_TRAIN + N_CALIBRATE)
        print("drawn from PERL, GSM8K and MATH", end=": ")
    batch = reasoning_features().fit_transform(batch)[rows]
    return batch, [y[i] for i in rows]


def padded(batch, labels, relaxation):
    """Tensors of all problems, as long as the longest of them."""
    n, longest, sizes = len(batch), batch.sizes.max(), batch.sizes
    cell = np.arange(longest) < sizes[:, None]
    weights = np.zeros((n, longest, longest))
    indptr, indices = batch.closure
    row = np.repeat(np.arange(batch.n_claims), np.diff(indptr))
    problem, first = batch.problem_of[row], batch.offsets[batch.problem_of[row]]
    gamma = relaxation.ancestor_weight
    weights[problem, row - first, indices - first] = np.where(indices == row, 1, gamma)
    weights /= np.maximum(weights.sum(axis=2, keepdims=True), 1)
    X = np.zeros((n, longest, batch.n_features))
    X[cell] = Standardizer.fit(batch.features)(batch.features)
    truth = np.full((n, longest), -1)
    truth[cell] = labels
    return [torch.tensor(x) for x in (X, cell, weights, truth == 1, truth == 0)]


def scores_and_kept(risk, cell, weights, false, setting):
    """Soft scores, and what turns a threshold into true claims; padded or not."""
    low = risk.masked_fill(~cell, torch.inf).amin(1) - setting.margin
    high = risk.masked_fill(~cell, -torch.inf).amax(1) + setting.margin
    t = torch.cat([low[:, None], risk, high[:, None]], 1)
    at = torch.cat([cell[:, :1], cell, cell[:, :1]], 1)
    x = (t[:, None] - risk[:, :, None]) / setting.keep_temperature
    log_q = weights @ logsigmoid(x)
    # A padded claim has no weights, and log q = 0: it is left out before the logarithm.
    log_q = log_q.masked_fill(~cell[:, :, None], -1.0)
    valid = torch.log(-torch.expm1(log_q)).masked_fill(~false[:, :, None], 0.0)
    n_false = false.sum(1, keepdim=True).clamp(min=1)
    V = -torch.expm1(valid.sum(1) / n_false / setting.violation_temperature)
    logits = minmax(t, at) - setting.violation_weight * minmax(V, at)
    u = (setting.sharpness * logits).masked_fill(~at, -torch.inf).softmax(1)

    def kept(threshold):
        gate = logsigmoid((threshold - t) / setting.gate_temperature)
        w = (setting.sharpness * t + gate).masked_fill(~at, -torch.inf).softmax(1)
        return (log_q.exp() * w[:, None]).sum(2)

    return (u * t.masked_fill(~at, 0.0)).sum(1), kept


def minmax(values, at):
    """Scaled to [0, 1] in each row; 0 where a row is constant."""
    low = values.masked_fill(~at, torch.inf).amin(1, keepdim=True)
    width = values.masked_fill(~at, -torch.inf).amax(1, keepdim=True) - low
    return (values - low) / torch.where(width > 0, width, 1.0)


def neural_sort(scores, k, strength):
    """The k-th smallest score, softly."""
    distance = (scores[:, None] - scores).abs().sum(1)
    logits = (2 * k - len(scores) - 1) * scores - distance
    return (strength * logits).softmax(0) @ scores


def unit(scores, cell):
    """Scores of all claims, moved to mean 0 and scaled to deviation 1."""
    flat = scores[cell]
    return (scores - flat.mean()) / flat.std(correction=0)


def padded_loss(w, data, setting):
    """Minus the logarithm of the soft retention, of all problems at once."""
    X, cell, weights, true, false = data
    risk = -unit(X @ w, cell).masked_fill(~cell, 0.0)
    scores, kept = scores_and_kept(risk, cell, weights, false, setting)
    k = max(conformal_rank(len(X), ALPHA), 1)
    threshold = neural_sort(scores, k, setting.quantile_strength)
    return -torch.log((kept(threshold) * true).sum() / len(X))


def graph_loss(w, data, setting):
    """The same, one graph after the other."""
    X, cell, weights, true, false = data
    risk = -unit(X @ w, cell)
    sizes = cell.sum(1).tolist()
    parts = [
        scores_and_kept(
            risk[i : i + 1, :n],
            cell[i : i + 1, :n],
            weights[i : i + 1, :n, :n],
            false[i : i + 1, :n],
            setting,
        )
        for i, n in enumerate(sizes)
    ]
    k = max(conformal_rank(len(X), ALPHA), 1)
    scores = torch.cat([s for s, _ in parts])
    threshold = neural_sort(scores, k, setting.quantile_strength)
    total = sum(
        (kept(threshold)[0] * true[i, :n]).sum()
        for i, (n, (_, kept)) in enumerate(zip(sizes, parts, strict=True))
    )
    return -torch.log(total / len(X))


def epochs(loss, data, setting, dtype, count):
    """Shortest epoch of Adam in milliseconds."""
    data = [x.to(dtype) if x.is_floating_point() else x for x in data]
    w = torch.full((data[0].shape[2],), 0.1, dtype=dtype, requires_grad=True)
    adam, times = torch.optim.Adam([w], lr=0.015), []
    for _ in range(count):
        start = time.process_time()
        adam.zero_grad()
        loss(w, data, setting).backward()
        adam.step()
        times.append(time.process_time() - start)
    return 1e3 * min(times)


def iteration(batch, y, relaxation, repeats=10):
    """Shortest fit of the public estimator over its steps, in milliseconds."""
    filter = CoherentConformalFilter(
        "linear",
        alpha=ALPHA,
        relaxation=relaxation,
        training=SoftTraining(LBFGS(max_iter=30)),
        calibration_size=N_CALIBRATE,
        random_state=0,
    )
    times = []
    for _ in range(repeats):
        new = GraphBatch.from_arrays(batch.features, batch.offsets, batch.edges)
        start = time.process_time()
        filter.fit(new, y)
        times.append((time.process_time() - start) / len(filter.loss_curve_))
    return 1e3 * min(times)


def check(data, batch, labels, setting):
    """Both losses are the package's own."""
    w = torch.full((data[0].shape[2],), 0.1, dtype=torch.float64)
    cell = data[1]
    risk = -unit(data[0] @ w, cell)[cell].numpy()
    expected = -np.log(setting.retention(risk, setting.plan(batch, labels), ALPHA))
    for loss in (padded_loss, graph_loss):
        assert abs(loss(w, data, setting).item() - expected) < 1e-9


def main():
    """Print times and ratios."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    batch, y = problems()
    train, setting = batch[:N_TRAIN], GridRelaxation()
    labels = pack_labels(y[:N_TRAIN], train)
    data = padded(train, labels, setting)
    check(data, train, labels, setting)
    longest, claims = int(train.sizes.max()), int(train.n_claims)
    cells = int((train.sizes * (train.sizes + 2)).sum())
    print(
        f"{N_TRAIN} problems, {claims} claims, {cells} cells, padded "
        f"{N_TRAIN * longest * (longest + 2)}"
    )
    grid = iteration(batch, y, setting)
    path = iteration(batch, y, PathRelaxation())
    single = epochs(padded_loss, data, setting, torch.float32, 30)
    double = epochs(padded_loss, data, setting, torch.float64, 30)
    loop = epochs(graph_loss, data, setting, torch.float32, 3)
    print(f"grid {grid:.2f} ms an iteration, path {path:.2f} ms")
    print(
        f"padded PyTorch: {double:.2f} ms in double precision, {single:.2f} in single"
    )
    print(f"  over grid: {double / grid:.1f} and {single / grid:.1f} times (bound 4.5)")
    print(f"PyTorch graph by graph: {loop:.0f} ms")
    print(f"  over grid: {loop / grid:.0f} times (bound 100)")
    print(f"  over path: {loop / path:.0f} times (bound 250)")


if __name__ == "__main__":
    main()
