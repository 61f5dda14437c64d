"""FRODA, D-FRODA and D-FRODA-U on Office-Caltech10, split `half`: tables in Markdown.

The first half of the classes in alphabetical order is known, the second half occurs in the
target alone, and the source has no unknown classes. Scores are means over the 12 ordered
pairs of domains. Classes are selected before any statistic is computed; target labels are
seen by the scores alone.

    python benchmarks/office_caltech.py FOLDER            # methods × heads, two settings
    python benchmarks/office_caltech.py FOLDER --readings # one choice changed at a time

FOLDER holds FEATURES_DOMAIN.npz with keys X, y and classes.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from froda import DFRODA, DFRODAU, FRODA
from froda.factorization.penalties import row_norms
from froda.heads import class_scores, make_head
from froda.metrics import open_set_scores

DOMAINS = ("amazon", "caltech10", "dslr", "webcam")
FEATURES = ("alexnet4096", "surf800")
UNKNOWN = -1
Maker = Callable[[], Any]


def methods() -> dict[str, Maker]:
    """Return the three methods with each head, with default and with literal settings."""
    heads = {
        FRODA: ("svm", "nn"),
        DFRODA: ("svm", "nn", "linear"),
        DFRODAU: ("svm", "nn", "linear"),
    }
    names = {FRODA: "FRODA", DFRODA: "D-FRODA", DFRODAU: "D-FRODA-U"}
    makers: dict[str, Maker] = {}
    for label, build in (("default", None), ("literal", "from_paper")):
        for method, method_heads in heads.items():
            for head in method_heads:
                maker = method if build is None else getattr(method, build)
                makers[f"{names[method]}-{head}, {label}"] = partial(maker, head=head)
    return makers


def readings() -> dict[str, Maker]:
    """Return FRODA with one choice changed at a time."""
    makers: dict[str, Maker] = {"default": FRODA}
    for epsilon in (0.0, 0.05, 0.1, 0.5, 1.0):
        makers[f"epsilon {epsilon}"] = partial(FRODA, epsilon=epsilon)
    for lam in (0.1, 0.2, 0.8):
        makers[f"lam {lam}"] = partial(FRODA, lam=lam)
    makers |= {
        "head on the codes": CodeHead,
        "decision by flag": partial(FRODA, decision="flag"),
        "no unit norm": partial(FRODA, unit_norm=False),
        "no z-score": partial(FRODA, zscore=False),
        "no row sum": partial(FRODA, row_sum=False),
        "unit norm alone": partial(FRODA, row_sum=False, zscore=False),
        "z-score of the whole domain": WholeDomain,
        "limit on the sum of norms": partial(FRODA, constraint="total"),
        "alpha 1": partial(FRODA, alpha=1.0),
        "D-FRODA, beta 1": partial(DFRODA, beta=1.0),
        "d = 10": partial(FRODA, n_components=10),
        "d = 20": partial(FRODA, n_components=20),
        "d = 40": partial(FRODA, n_components=40),
        "literal": FRODA.from_paper,
        "literal, limit on the sum": partial(FRODA.from_paper, constraint="total"),
    }
    return makers


class CodeHead(FRODA):
    """FRODA whose head works on the shared codes instead of the features."""

    def _train_head(self, domains: Any, source: Any, target: Any) -> None:  # noqa: ARG002
        width = self.shared_basis_.shape[1]
        codes = np.vstack([self.source_codes_, self.target_codes_[self.unknown_mask_, :width]])
        flagged = np.full(int(self.unknown_mask_.sum()), domains.labels.n_known)
        numbers = np.append(domains.labels.numbers, flagged)
        self.classifier_ = make_head(self.head, codes, None).fit(codes, numbers)

    def decision_function(self, X: Any) -> Any:
        """Return the scores of the head on the codes."""
        shared = self._code(X)[1][:, : self.shared_basis_.shape[1]]
        return class_scores(self.classifier_, shared, len(self.classes_))


class WholeDomain(FRODA):
    """Marks the run whose z-score sees the source classes that the split removes."""


def standardise(X: np.ndarray) -> np.ndarray:
    """Divide rows by their sums and z-score columns over all rows of the domain."""
    X = X / np.abs(X).sum(axis=1, keepdims=True)
    deviation = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(deviation > 0, deviation, np.inf)


def load(folder: Path, features: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return X and y of each domain."""
    data = {}
    for domain in DOMAINS:
        path = folder / f"{features}_{domain}.npz"
        if not path.exists():
            raise SystemExit(f"{path} is missing: FOLDER must hold {features}_DOMAIN.npz files.")
        with np.load(path) as file:
            data[domain] = file["X"].astype(np.float64), file["y"]
    return data


def run(folder: Path, features: str, pair: tuple[str, str], maker: Maker) -> dict[str, float]:
    """Fit one method on one pair and score it."""
    data = load(folder, features)
    (X, y), (X_target, y_target) = data[pair[0]], data[pair[1]]
    half = (y.max() + 1) // 2
    known = y < half
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = maker()
        if isinstance(model, WholeDomain):  # what a z-score before the selection amounts to
            X, X_target = standardise(X), standardise(X_target)
            model.set_params(row_sum=False, zscore=False)
        began = time.perf_counter()
        model.fit(X[known], y[known], X_target)
        labels = model.predict(X_target)
        seconds = time.perf_counter() - began
    truth = np.where(y_target < half, y_target, UNKNOWN)
    score = model.unknown_score(X_target)
    scores = open_set_scores(truth, labels, score, unknown_label=UNKNOWN)
    width = model.shared_basis_.shape[1]
    shared, private = (
        row_norms(model.target_codes_[:, :width]),
        row_norms(model.target_codes_[:, width:]),
    )
    total = shared + private
    ratio = np.where(total > 0, private / np.where(total > 0, total, 1), 1)
    return {
        **{name: 100 * scores[name] for name in ("OS", "OS*", "UNK", "HOS")},
        "AUROC": scores["AUROC"],
        "AUROC of the ratio": float(roc_auc_score(truth == UNKNOWN, ratio)),
        "flagged %": 100 * float(model.unknown_mask_.mean()),
        "d": float(model.n_components_),
        "iterations": float(model.n_iter_),
        "seconds": seconds,
    }


def table(folder: Path, features: str, makers: dict[str, Maker], jobs: int) -> str:
    """Return the Markdown table of one kind of features."""
    pairs = list(itertools.permutations(DOMAINS, 2))
    tasks = [(name, pair) for name in makers for pair in pairs]
    results = Parallel(n_jobs=jobs)(
        delayed(run)(folder, features, pair, makers[name]) for name, pair in tasks
    )
    lines = []
    for name in makers:
        rows = [row for (other, _), row in zip(tasks, results, strict=True) if other == name]
        means = {column: np.mean([row[column] for row in rows]) for column in rows[0]}
        if not lines:
            lines = [f"| {features} | " + " | ".join(means) + " |"]
            lines.append("|---|" + "---:|" * len(means))
        cells = [f"{v:.3f}" if k.startswith("AUROC") else f"{v:.1f}" for k, v in means.items()]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--readings", action="store_true", help="change one choice at a time")
    parser.add_argument("--features", choices=FEATURES, nargs="*", default=list(FEATURES))
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    makers = readings() if options.readings else methods()
    for features in options.features:
        print(table(options.folder, features, makers, options.jobs), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
