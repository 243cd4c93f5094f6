"""Fit the public priors on public labels, and write them to files.

    python -m benchmarks.retention.make_prior [--agreement] [--output FILE] [--without SET]
        [--check]

With --agreement, the program fits the prior for agreement columns. The sources are downloaded, or
read from the folder SKDCF_DATA. With --without, the family of a data set is excluded, together with
all its questions that occur in other sources. Our pages use the resulting prior on that data set.
For the recorded probes, the log odds agree with those of the file in the package to 1e-6.
"""

import argparse
import json
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import sklearn
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import skdcf
from benchmarks.real_data import with_alternatives
from skdcf import GraphBatch
from skdcf.datasets import (
    fetch_felm,
    fetch_gsm8k_solutions,
    fetch_mr_ben,
    fetch_perl,
    fetch_prmbench,
    fetch_process_bench,
)
from skdcf.datasets.fetch import SOURCES as FILES
from skdcf.features import reasoning_features
from skdcf.graphs import pack_labels
from skdcf.graphs.hashes import question_hashes
from skdcf.ops.hard import below_true_claims
from skdcf.scorers import PublicPrior
from skdcf.scorers._prior import FORMAT, attributes_of, digest
from skdcf.scorers._tree_tables import as_table, design, join
from skdcf.training.splitting import Standardizer

SHIPPED = Path(skdcf.__file__).parent / "scorers" / "mathematics_prior.json"
AGREEMENT = SHIPPED.with_name("agreement_prior.json")
CAP = 2000  # answers of one source, drawn at random
SEED = 0
N_PROBES = 50
# What is fetched, from which family, under which licence its labels are, and its files.
SOURCES = {
    "ProcessBench gsm8k": (
        "process-bench",
        "Apache-2.0, taken from a copy under MIT",
        lambda: fetch_process_bench("gsm8k"),
        ("process_bench/gsm8k.json",),
    ),
    "GSM8K model solutions": (
        "gsm8k-solutions",
        "MIT",
        fetch_gsm8k_solutions,
        ("gsm8k_solutions/example_model_solutions.jsonl",),
    ),
    "PERL gsm8k and math": (
        "perl",
        "MIT",
        lambda: fetch_perl(label="any"),
        ("perl/gsm8k/*", "perl/math/*"),
    ),
    "PRMBench train": (
        "prmbench",
        "Apache-2.0 by a badge, without a licence file",
        lambda: fetch_prmbench("train"),
        ("prmbench/prm800k_train_p1_*",),
    ),
    "Mr-Ben math": (
        "mr-ben",
        "MIT",
        lambda: fetch_mr_ben("math"),
        ("mr_ben/math.json",),
    ),
    "Mr-Ben biology": (
        "mr-ben",
        "MIT",
        lambda: fetch_mr_ben("biology"),
        ("mr_ben/biology.json",),
    ),
    "Mr-Ben chemistry": (
        "mr-ben",
        "MIT",
        lambda: fetch_mr_ben("chemistry"),
        ("mr_ben/chemistry.json",),
    ),
}
# The sources of each file that ships.
OF_REASONING = tuple(SOURCES)[:5]
OF_AGREEMENT = "GSM8K model solutions", *tuple(SOURCES)[4:]
MOST = 3  # other answers that a claim is compared with
# The columns of AgreementFeatures but the number of answers, which says where they are from.
COLUMNS = (
    "answer_agreement",
    "answer_rival",
    "answer_entropy",
    "numbers_agreement",
    "numbers_all_agree",
    "has_new_numbers",
    "results_agreement",
    "results_all_agree",
    "has_results",
    "words_agreement",
    "numbers_agreement_above",
)
# What can be left out, and with it all its questions.
SETS = {
    "process-bench": lambda: fetch_process_bench("gsm8k"),
    "gsm8k-solutions": fetch_gsm8k_solutions,
    "perl": lambda: fetch_perl(label="any"),
    "prmbench": lambda: fetch_prmbench("train"),
    "mr-ben": lambda: fetch_mr_ben("math"),
    "felm": fetch_felm,
}
CARD = {
    "what": "Mean of a logistic regression and boosted trees for each source. The inputs are "
    "the columns of reasoning_features(), the means of these columns over the problem, and "
    "the logarithm of the number of claims. The output is the log odds that a claim is "
    "false, given that all its ancestors are true. The weight of a source is proportional "
    "to its mean AUC on the other sources minus 1/2.",
    "tried": 'The section "Few labels" of the documentation reports the results on data sets '
    "whose family and questions were excluded from training. The settings and the blend "
    "were chosen on ProcessBench, PERL, Mr-Ben mathematics, FELM and chemistry, so the gains "
    "on these sets are optimistic.",
    "fails": "Answers that are not mathematics. The prior reduces the number of kept claims on "
    "chemistry and biology, and on FELM if it is used without training. The prior "
    "recognises mathematics only by the columns. Inserted errors are another failure: "
    "a scorer fitted on about one hundred of your own labelled answers is better.",
    "text": "The file contains no text of the sources, only numbers and hashes of questions.",
}


OF_AGREEING = CARD | {
    "what": "Mean of a logistic regression and boosted trees for each source. The inputs are "
    "eleven columns of AgreementFeatures, the means of these columns over the problem, and "
    "the logarithm of the number of claims. The output is the log odds that a claim is "
    "false, given that all its ancestors are true. The weight of a source is proportional "
    "to its mean AUC on the other sources minus 1/2.",
    "tried": 'The section "Few labels" of the documentation reports the results on Mr-Ben '
    "and on GSM8K solutions, each with a prior that was fitted on the other one.",
    "fails": "Questions that most answers get wrong, because agreement is then misleading. "
    "An example is Mr-Ben mathematics, where 84 % of the answers are wrong.",
}


def read_source(data, without=(), most=0):
    """Problems with their columns and flat labels, none of the questions ``without``."""
    graphs = with_alternatives(data.graphs, most)
    labels = np.split(pack_labels(data.labels, graphs), graphs.offsets[1:-1])
    rows = np.random.RandomState(SEED).permutation(len(graphs))
    hashes = question_hashes(graphs)
    rows = np.sort(rows[~np.isin(hashes[rows], without)][:CAP])
    batch = graphs[rows]
    bare = GraphBatch.from_graphs([g.replace(features=None) for g in batch])
    batch = reasoning_features().fit_transform(bare)
    return batch, np.concatenate([labels[i] for i in rows]), hashes[rows]


def keep(batch, columns):
    """The problems with some of their columns."""
    rows = [batch.feature_names.index(name) for name in columns]
    return batch.replace_features(batch.features[:, rows], columns)


def learn(sources):
    """The record of a prior from (problems, flat labels, hashes) by name.

    Each source has a logistic regression and boosted trees of its own, which see columns
    in units of that source, and the prior is a mean of what they all say. Learnt from
    all claims together the same classifiers follow what differs between the sources, such
    as how often an answer is wrong, and tell errors of a set that was left out less well.
    """
    tables = [design(batch) for batch, _, _ in sources.values()]
    own = [Standardizer.fit(table) for table in tables]
    mean = np.mean([one.mean for one in own], axis=0)
    scales = np.array([one.scale for one in own])
    there = np.isfinite(scales)
    common = np.where(there, scales, 0).sum(axis=0) / np.maximum(there.sum(axis=0), 1)
    common = np.where(common > 0, common, np.inf)
    fitted, tried, about, after = [], [], {}, np.zeros(2)
    n = next(iter(sources.values()))[0].n_features
    for (name, (batch, labels, _)), table, one in zip(
        sources.items(), tables, own, strict=True
    ):
        at_risk = below_true_claims(labels, batch) & (labels >= 0)
        wrong = labels[at_risk] == 0
        # Rounded, so that no last bit of a mean decides about a split.
        X = np.round(one(table)[at_risk], 6)
        both = [as_table(model.fit(X, wrong)) for model in classifiers()]
        fitted.append(replace(join(both, len(mean)), standardizer=one))
        tried.append((SOURCES[name][0], table[at_risk], wrong))
        below = (labels >= 0) & ~below_true_claims(labels != 0, batch)
        after += [labels[below].sum(), below.sum()]
        gap = np.abs((one.mean - mean)[:n] / common[:n]).mean()
        about[name] = {
            "answers": len(batch),
            "claims": len(labels),
            "claims at risk": len(wrong),
            "first errors": int(wrong.sum()),
            "distance": round(float(gap), 3),
        }
    weights = transfer(fitted, tried)
    for name, weight in zip(about, weights, strict=True):
        about[name]["weight"] = weight
    return {
        "mean": mean,
        "scale": common,
        "tables": fitted,
        "weights": weights,
        "true_after_error": (after[0] + 0.5) / (after[1] + 1),
        "sources": about,
    }


def transfer(tables, tried):
    """Weights of the sources: how well each tells errors of the other families.

    In proportion to the mean of AUC - 1/2, and equal where no source tells any. Three
    digits, so that no two claims that nearly tie decide about the file.
    """
    gain = np.zeros(len(tables))
    for i, table in enumerate(tables):
        others = [(X, y) for family, X, y in tried if family != tried[i][0]]
        found = [roc_auc_score(y, table.read(X)[0]) - 0.5 for X, y in others]
        gain[i] = np.maximum(found, 0).mean() if found else 0
    gain = gain if gain.any() else np.ones(len(tables))
    return np.round(gain / gain.sum(), 3).tolist()


def classifiers():
    """What learns from one source, unfitted."""
    linear = LogisticRegression(C=0.01, solver="newton-cholesky", tol=1e-10)
    boosted = HistGradientBoostingClassifier(
        max_iter=150,
        max_depth=3,
        learning_rate=0.1,
        l2_regularization=5.0,
        max_features=0.3,
        min_samples_leaf=100,
        max_bins=63,
        early_stopping=False,
        random_state=SEED,
    )
    return linear, boosted


def short(values):
    """Nine digits of each number; null is infinity, which JSON has no number for."""
    values = np.asarray(values)
    if values.dtype.kind in "iu":
        return values.tolist()
    found = [float(f"{x:.9g}") if np.isfinite(x) else None for x in np.ravel(values)]
    return found if values.ndim else found[0]


def manifest(name):
    """Address, pinned by a commit, and SHA-256 of each file of a source."""
    patterns = SOURCES[name][3]
    return {
        file.url: file.checksum
        for path, file in FILES.items()
        if any(fnmatch(path, pattern) for pattern in patterns)
    }


def record_of_trees(tables):
    """The trees of all sources as one table, each source a forest of its own."""
    n = len(tables[0].weights)
    shifted = [
        replace(
            table,
            feature=table.feature + i * n,
            weights=np.zeros(n * len(tables)),
            forest=np.zeros_like(table.root),
            doubt=np.zeros(1),
        )
        for i, table in enumerate(tables)
    ]
    joined = join(shifted, n * len(tables))
    joined = replace(joined, down=joined.down - np.arange(len(joined.down)))
    names = "feature", "threshold", "down", "value", "root", "depth", "forest"
    return {name: short(getattr(joined, name)) for name in names}


def record_of(learnt, columns, questions, licences, card):
    """What the file holds."""
    tables = learnt["tables"]
    sources = {
        name: about | {"labels under": licences[name], "files": manifest(name)}
        for name, about in learnt["sources"].items()
    }
    return {
        "format": FORMAT,
        "columns": list(columns),
        "card": card
        | {
            "sources": sources,
            "made with": {
                "skdcf": skdcf.__version__,
                "scikit-learn": sklearn.__version__,
            },
            "seed": SEED,
            "cap": CAP,
        },
        "true_after_error": short(learnt["true_after_error"]),
        "scale": {"mean": short(learnt["mean"]), "scale": short(learnt["scale"])},
        "linear": [short(np.append(t.weights, t.offset)) for t in tables],
        "trees": record_of_trees(tables),
        "units": {
            name: [short(getattr(t.standardizer, name)) for t in tables]
            for name in ("mean", "scale")
        },
        "weights": learnt["weights"],
        "questions": np.unique(questions[questions >= 0]).tolist(),
    }


def make(without=None, names=OF_REASONING, agreement=False):
    """The record of a prior, without a family and its questions."""
    out_of_it = (
        question_hashes(GraphBatch.from_graphs(SETS[without]().graphs))
        if without
        else ()
    )
    sources = {
        name: read_source(SOURCES[name][2](), out_of_it, MOST * agreement)
        for name in names
        if SOURCES[name][0] != without
    }
    # Questions with options to choose from have columns that the other sources lack.
    names_of = [batch.feature_names for batch, _, _ in sources.values()]
    columns = [name for name in names_of[0] if all(name in own for own in names_of)]
    columns = [name for name in columns if name in COLUMNS] if agreement else columns
    sources = {name: (keep(s[0], columns), *s[1:]) for name, s in sources.items()}
    questions = np.concatenate([hashes for _, _, hashes in sources.values()])
    licences = {name: SOURCES[name][1] for name in names}
    card, learnt = OF_AGREEING if agreement else CARD, learn(sources)
    record = record_of(learnt, columns, questions, licences, card)
    record["probes"] = log_odds(record, probes(record)).tolist()
    return record | {"sha256": digest(record)}


def probes(record):
    """Rows of columns near the centre, drawn anew from a seed."""
    mean, scale = (np.array(record["scale"][key], float) for key in ("mean", "scale"))
    rows = np.random.RandomState(SEED).normal(size=(N_PROBES, len(mean)))
    return mean + np.nan_to_num(scale) * rows


def log_odds(record, rows):
    """What the prior says of rows of all its columns."""
    prior = PublicPrior()
    vars(prior).update(attributes_of(record | {"sha256": digest(record)}))
    return prior.weights_ @ prior.log_odds(rows)


def check(record, path):
    """Largest difference from a file that ships, on the recorded probes."""
    shipped = json.loads(path.read_text())
    found = log_odds(record, probes(shipped))
    return float(np.abs(found - shipped["probes"]).max())


def main():
    """Write the file of a prior, or compare the prior with the file in the package."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--agreement", action="store_true", help="fit the agreement prior"
    )
    parser.add_argument("--output", type=Path)
    parser.add_argument("--without", choices=sorted(SETS))
    parser.add_argument(
        "--check", action="store_true", help="compare with the file, and write nothing"
    )
    chosen = parser.parse_args()
    names = OF_AGREEMENT if chosen.agreement else OF_REASONING
    record = make(chosen.without, names, chosen.agreement)
    shipped = AGREEMENT if chosen.agreement else SHIPPED
    if chosen.check:
        difference = check(record, shipped)
        print(f"largest difference on {N_PROBES} probes: {difference:.1e}")
        raise SystemExit(difference > 1e-6)
    text = json.dumps(record, separators=(",", ":"))
    path = chosen.output or shipped
    path.write_text(text + "\n", encoding="ascii")
    print(f"{path}: {len(text):,} bytes")
    print(json.dumps(record["card"]["sources"], indent=1))


if __name__ == "__main__":
    main()
