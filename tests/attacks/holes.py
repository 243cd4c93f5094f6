"""What was missed through holes in the promise, commit by commit.

    python tests/attacks/holes.py [--fits 200] [--only WORD ...]

Each line is a way in which more was kept than promised before November 2026, or less than it
could be. It says what is missed for alpha = 0.1 on average over the fits, with its error, or
in which share of the fits the filter refuses. The same program runs on older commits, with
their ``skdcf`` on PYTHONPATH, and shows the holes there.
"""

import argparse
import importlib.util
import json
import sys
import tempfile
import time
import tracemalloc
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from skdcf import GraphBatch, HardCF
from skdcf.datasets import read_jsonl
from skdcf.estimators import check
from skdcf.guarantees import ExpectedFalse, NoFalseClaim
from skdcf.monitoring import release

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from levels import thresholds

NO_EDGES = np.empty((0, 2), dtype=int)
ALPHA = 0.1
SHARE = 0.35  # of the answers that hold a false claim, in worlds of one claim


def one_claim_each(columns, **more):
    columns = np.asarray(columns, dtype=float).reshape(len(columns), -1)
    return GraphBatch.from_arrays(
        columns, np.arange(len(columns) + 1), NO_EDGES, **more
    )


def mean_and_error(misses):
    """The mean over the fits that were not refused, as a text."""
    misses = np.asarray(misses, dtype=float)
    good = misses[~np.isnan(misses)]
    refused = f"refused {len(misses) - len(good)} of {len(misses)}"
    if not len(good):
        return refused
    error = good.std() / len(good) ** 0.5
    more = f", {refused}" if len(good) < len(misses) else ""
    return f"missed {good.mean():.3f} +- {error:.3f}{more}"


# ---------------------------------------------------------------- answers without claims


def answers_without_claims(share, n_fits):
    """A tenth of the answers that hold a claim are judged, and none of the empty ones."""
    return mean_and_error([_empty_answers(share, seed) for seed in range(n_fits)])


def _empty_answers(share, seed, n=600):
    rng = np.random.default_rng(seed)
    empty = rng.random(n) < share
    confidence = rng.random((~empty).sum())
    labels = np.where(rng.random(len(confidence)) < SHARE, 0, 1)
    labels[rng.random(len(labels)) > 0.1] = -1
    offsets = np.append(0, np.cumsum(~empty))
    batch = GraphBatch.from_arrays(
        confidence[:, None], offsets, NO_EDGES, metadata=[{"sampling": "random"}] * n
    )
    cf = HardCF(0, alpha=ALPHA).fit(batch, labels)
    return (1 - share) * SHARE * np.clip(1 + cf.threshold_, 0, 1)


def the_program_label(share, n_fits):
    """The same through files, in the form that `skdcf label` wrote at that time."""
    misses = []
    for seed in range(max(1, n_fits // 10)):
        rng = np.random.default_rng(seed)
        lines = []
        for i in range(600):
            n_claims = int(rng.random() >= share)
            label = int(rng.random() > SHARE) if rng.random() < 0.1 else -1
            line = {
                "claims": [f"claim {i}"] * n_claims,
                "features": rng.random((n_claims, 1)).tolist(),
                "labels": [label] * n_claims,
                "n_features": 1,
                "edges": [],
                "metadata": {"sampling": "random"},
            }
            lines.append(json.dumps(line | {"id": f"answer {i}"}))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "labelled.jsonl"
            path.write_text("\n".join(lines))
            read = read_jsonl(path)
            labels = read.labels
            cf = HardCF(0, alpha=ALPHA).fit(read.graphs, labels)
        misses.append((1 - share) * SHARE * np.clip(1 + cf.threshold_, 0, 1))
    return mean_and_error(misses)


# -------------------------------------------------------- questions that are named twice


def of_questions(rng, spots, hard, n_answers, **more):
    """Answers of one claim, whose columns tell the question and whose errors it decides."""
    number = np.repeat(np.arange(len(spots)), n_answers)
    columns = spots[number] + 1e-3 * rng.normal(size=(len(number), spots.shape[1]))
    false = hard[number]
    more = {name: values(number) for name, values in more.items()}
    return one_claim_each(columns, **more), 1 - false.astype(int), number


NAMED = {
    "key, then text": (True, False, None, None),
    "text, then key": (False, True, None, None),
    "text, then groups=": (False, False, None, lambda i: [f"name {k}" for k in i]),
    "7, then '7'": (None, None, lambda i: i, lambda i: [str(k) for k in i]),
}


def named_twice(way, n_fits):
    """What trained calibrates under another name; the scorer is the nearest neighbour."""
    misses = [_named_twice(NAMED[way], seed) for seed in range(n_fits)]
    return mean_and_error(misses)


def _named_twice(way, seed, n=60):
    rng = np.random.default_rng(seed)
    spots = rng.normal(size=(n, 3))
    hard = rng.random(n) < 0.35
    key_before, key_now, groups_before, groups_now = way
    texts = {} if key_before is None else {"problems": _texts}
    before = texts | ({"metadata": _keys} if key_before else {})
    now = texts | ({"metadata": _keys} if key_now else {})
    X, y, number = of_questions(rng, spots, hard, 3, **before)
    cf = HardCF(KNeighborsClassifier(1), alpha=ALPHA, random_state=0)
    cf.fit(X, y, groups=groups_before and np.array(groups_before(number)))
    X, y, number = of_questions(rng, spots, hard, 3, **now)
    try:
        cf.calibrate(X, y, groups=groups_now and np.array(groups_now(number)))
    except ValueError as error:
        if "used for training" not in str(error):
            raise
        return np.nan
    new_spots = rng.normal(size=(400, 3))
    new_hard = rng.random(400) < 0.35
    X, y, _ = of_questions(rng, new_spots, new_hard, 1)
    kept = np.concatenate(cf.predict(X))
    return (kept & (y == 0)).mean()


def _texts(number):
    return [f"Question {i}?" for i in number]


def _keys(number):
    return [{"group": f"name {i}"} for i in number]


def joined_parts(_):
    """Thirty questions in two parts, one by key and one by text."""
    rng = np.random.default_rng(0)
    questions = np.arange(30)
    cf = HardCF(0, alpha=0.2).fit(one_claim_each(rng.random(40)), np.ones(40, int))
    by_key = one_claim_each(
        rng.random(30), problems=_texts(questions), metadata=_keys(questions)
    )
    by_text = one_claim_each(rng.random(30), problems=_texts(questions))
    y = (rng.random(60) < 0.7).astype(int)
    parts = [cf.calibration_part(by_key, y[:30]), cf.calibration_part(by_text, y[30:])]
    cf.calibrate_parts(parts)
    n_counted = cf.n_calibration_ + len(cf.unused_indices_)
    return f"{n_counted} questions are counted, and there are 30"


# ------------------------------------------------------------------------ columns


def a_cell_that_runs_again(kind, n_fits):
    """The function of a notebook is changed; what calibrates carries the old columns."""
    misses = [_cell(kind, seed) for seed in range(max(2, n_fits // 10))]
    return mean_and_error(misses)


CELLS = {
    "function": "def answer(text):\n    return {}\n",
    "instance": "class Reader:\n    def __call__(self, text):\n        return {}\n"
    "answer = Reader()\n",
}


def _run_cell(code):
    """Run a cell of a notebook, whose names take the place of those of the last one."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "notebook.py"
        path.write_text(code, encoding="utf-8")
        spec = importlib.util.spec_from_file_location("notebook", path)
        notebook = importlib.util.module_from_spec(spec)
        sys.modules["notebook"] = notebook
        spec.loader.exec_module(notebook)
    return notebook


def _cell(kind, seed):
    from skdcf.features import AgreementFeatures

    def texts(numbers):
        return [f"answer {n}" for n in numbers]

    def sampled(rng, n):
        """The share of equal other answers is high where the answer is right."""
        false = rng.random(n) < SHARE
        agree = rng.beta(np.where(false, 2, 5), 3)
        others = (rng.random((n, 9)) < agree[:, None]).astype(int)
        batch = one_claim_each(
            np.zeros(n),
            claims=["answer 1"] * n,
            problems=[f"Question {seed} {i} {n}?" for i in range(n)],
            alternatives=[texts(row) for row in others],
        )
        return batch, 1 - false.astype(int)

    rng = np.random.default_rng(seed)
    X, y = sampled(rng, 100)
    notebook = _run_cell(CELLS[kind].format("str(hash(text))"))
    old = AgreementFeatures(answer=notebook.answer)
    X = check(HardCF("answer_agreement", features=old, alpha=ALPHA).fit(X, y), X)
    notebook = _run_cell(CELLS[kind].format("'all agree'"))
    new = AgreementFeatures(answer=notebook.answer)
    cf = HardCF("answer_agreement", features=new, alpha=ALPHA).fit(X, y)
    X, y = sampled(rng, 2000)
    kept = np.concatenate(cf.predict(X))
    return (kept & (y == 0)).mean()


# ---------------------------------------------------------------- answers and groups


def release_behind_groups(alpha, n_fits):
    """Whole answers are released; hard questions have answers in many groups."""
    shares = [_release(alpha, seed) for seed in range(n_fits)]
    return mean_and_error(shares)


def _release(alpha, seed):
    """Easy questions have answers in one group, and hard ones in all eight."""
    rng = np.random.default_rng(seed)
    easy = rng.random(100) < 0.7
    number = np.repeat(np.arange(100), np.where(easy, 8, 1))
    parts = np.concatenate([np.arange(8) if e else [rng.integers(8)] for e in easy])
    risk, false = _risks(rng, easy[number])
    rows = [
        {"part": int(p), "group": int(q)} for p, q in zip(parts, number, strict=True)
    ]
    X = one_claim_each(-risk, metadata=rows)
    guarantee = NoFalseClaim(by="part")
    cf = HardCF(0, alpha=alpha, guarantee=guarantee).fit(X, 1 - false)
    new_easy = rng.random(100) < 0.7
    risk, false = _risks(rng, new_easy)
    new = one_claim_each(-risk, metadata=[{"part": 0}] * 100)
    chosen = release(cf, new, alpha=alpha)
    return false[chosen].mean() if chosen.any() else 0.0


def _risks(rng, easy):
    risk = rng.random(len(easy))
    false = rng.random(len(easy)) < np.where(easy, 0.1, 0.9) * np.sqrt(risk)
    return risk, false.astype(int)


def delta_in_groups(_):
    """Ten groups of 60, and how many of the calibration sets hold in all of them."""
    rng = np.random.default_rng(0)
    n_all, n_each = 0, 0
    guarantee = NoFalseClaim(by="part", delta=0.05)
    groups = np.repeat(np.arange(10), 60)
    for _ in range(200):
        X = one_claim_each(rng.random(600), metadata=[{"part": int(g)} for g in groups])
        cf = HardCF(0, alpha=ALPHA, guarantee=guarantee).fit(X, np.zeros(600, int))
        new = one_claim_each(
            np.full(10, 0.5), metadata=[{"part": g} for g in range(10)]
        )
        missed = 1 + thresholds(cf, new)
        n_all += (missed <= ALPHA).all()
        n_each += (missed <= ALPHA).mean()
    return (
        f"all groups hold in {n_all / 200:.3f} of the sets, each in {n_each / 200:.3f}; "
        f"printed: {cf.calibration_.describe(ALPHA)}"
    )


# ---------------------------------------------------------------------- few contents


def worlds_of_few_contents(n_contents, n_fits):
    """Ten distinct problems; twenty of them calibrate: the worst of sixty worlds."""
    worst = [_world(n_contents, world, n_fits) for world in range(60)]
    return f"worst of 60 worlds {max(worst):.3f}, mean {np.mean(worst):.3f}"


def _world(n_contents, world, n_fits):
    rng = np.random.default_rng([world, n_contents])
    confidence = rng.random(n_contents)
    false = rng.random(n_contents) < 0.5
    misses = []
    for _ in range(n_fits):
        drawn = rng.integers(n_contents, size=25)
        X = one_claim_each(confidence[drawn])
        cf = HardCF(0, alpha=ALPHA).fit(X, 1 - false[drawn].astype(int))
        misses.append(((-confidence < cf.threshold_) & false).mean())
    return float(np.mean(misses))


def a_pool_that_is_split(_, n_splits=200):
    """A pool of 60 questions with three answers each, split again and again."""
    means = [_pool(seed, n_splits) for seed in range(20)]
    return (
        f"means of 20 pools: standard deviation {np.std(means):.3f}, largest "
        f"{max(means):.3f}, coverage {1 - np.mean(means):.3f} +- "
        f"{np.std(means) / 20**0.5:.3f}"
    )


def _pool(seed, n_splits):
    rng = np.random.default_rng(seed)
    number = np.repeat(np.arange(60), 3)
    hard = rng.random(60)[number]
    false = rng.random(180) < hard
    confidence = 0.5 * (1 - hard) + rng.random(180)
    misses = []
    for _ in range(n_splits):
        questions = rng.permutation(60)
        old = np.isin(number, questions[:25])
        X = one_claim_each(confidence[old], metadata=_keys(number[old]))
        cf = HardCF(0, alpha=ALPHA).fit(X, 1 - false[old].astype(int))
        kept = -confidence < cf.threshold_
        new = np.flatnonzero(~old)
        misses.append((kept & false)[new].mean())
    return float(np.mean(misses))


# --------------------------------------------------------------------------- the rest


def left_over(_):
    """Answers that nobody judged come first, and what is left over is said in their rows."""
    rng = np.random.default_rng(0)
    X = one_claim_each(rng.random(118), metadata=[{"sampling": "random"}] * 118)
    y = np.where(np.arange(118) < 50, -1, 1)
    cf = HardCF(0, alpha=0.2).fit(one_claim_each(rng.random(40)), np.ones(40, int))
    left = np.asarray(cf.calibrate(X, y).unused_indices_)
    return f"{left.tolist()}, of which {np.sum(left < 50)} were not judged"


def bits_of_expected_false(_):
    """Shares are thirds, whose sums meet the bound of a fifth or miss it by bits."""
    rng = np.random.default_rng(0)
    n_kept = n_exact = 0
    for n in rng.integers(20, 60, size=300):
        confidence = np.round(rng.random(3 * n), 2)
        y = (rng.random(3 * n) < 0.8).astype(int)
        X = GraphBatch.from_arrays(
            confidence[:, None], np.arange(0, 3 * n + 1, 3), NO_EDGES
        )
        cf = HardCF(0, alpha=0.2, guarantee=ExpectedFalse("share")).fit(X, y)
        levels = np.concatenate(cf.predict_alpha(X))
        n_kept += np.concatenate(cf.predict(X)).sum()
        n_exact += (levels <= 0.2 + 1e-9).sum()
    return f"{n_kept} claims are kept, and {n_exact} by exact sums"


def memory_online(n_claims, _):
    """`predict` of one long answer, while written."""
    rng = np.random.default_rng(0)
    cf = HardCF(0, alpha=ALPHA, online=True)
    cf.fit(one_claim_each(rng.random(99)), (rng.random(99) < 0.7).astype(int))
    chain = np.stack([np.arange(n_claims - 1), np.arange(1, n_claims)], axis=1)
    X = GraphBatch.from_arrays(rng.random((n_claims, 1)), [0, n_claims], chain)
    tracemalloc.start()
    begin = time.process_time()
    cf.predict(X)
    seconds = time.process_time() - begin
    peak = tracemalloc.get_traced_memory()[1]
    return f"{seconds:.2f} s, {peak / 2**20:,.0f} MiB"


def stream_online(n_claims, _):
    rng = np.random.default_rng(0)
    cf = HardCF(0, alpha=ALPHA, online=True)
    cf.fit(one_claim_each(rng.random(99)), (rng.random(99) < 0.7).astype(int))
    claims = (
        {"text": f"{i}", "parents": [i - 1] if i else [], "features": [r]}
        for i, r in enumerate(rng.random(n_claims))
    )
    begin = time.process_time()
    for _ in cf.stream(claims):
        pass
    return f"{time.process_time() - begin:.2f} s"


def cases():
    """The name of each case, and the function of the number of fits that measures it."""
    for share in (0.1, 0.2, 0.4):
        name = f"{share:.0%} of the answers are empty"
        yield name, partial(answers_without_claims, share)
    for share in (0.02, 0.2):
        yield f"{share:.0%} are empty, in a file", partial(the_program_label, share)
    for way in NAMED:
        yield f"named twice: {way}", partial(named_twice, way)
    yield "parts, by key and by text", joined_parts
    for kind in CELLS:
        yield f"a cell runs again: {kind}", partial(a_cell_that_runs_again, kind)
    for alpha in (0.1, 0.2):
        name = f"release behind by=, alpha {alpha}"
        yield name, partial(release_behind_groups, alpha)
    yield "delta with by=, ten groups", delta_in_groups
    yield "a world of ten contents", partial(worlds_of_few_contents, 10)
    yield "a pool that is split", a_pool_that_is_split
    yield "left over of calibrate", left_over
    yield "bits of ExpectedFalse", bits_of_expected_false
    for n_claims in (1_000, 10_000):
        name = f"predict online, {n_claims:,} claims"
        yield name, partial(memory_online, n_claims)
    yield "stream online, 600 claims", partial(stream_online, 600)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fits", type=int, default=200)
    parser.add_argument("--only", nargs="*", default=[""], help="words in the names")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name, measure in cases():
        if not any(word in name for word in options.only):
            continue
        begin = time.perf_counter()
        try:
            line = measure(options.fits)
        except (MemoryError, ValueError) as error:
            line = f"{type(error).__name__}: {str(error)[:100]}"
        print(f"{name:<34} {line}  ({time.perf_counter() - begin:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
