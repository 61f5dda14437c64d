"""Open-set metrics: plain functions of labels and scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score


def _recalls(y_true: Any, y_pred: Any, unknown_label: Any) -> tuple[NDArray[Any], float]:
    """Return the recall of each known class that occurs, and of the pooled unknowns."""
    y_true, y_pred = np.asarray(y_true), np.asarray(y_pred)
    hits = y_true == y_pred
    unknown = y_true == unknown_label
    known = np.array([hits[y_true == label].mean() for label in np.unique(y_true[~unknown])])
    return known, float(hits[unknown].mean()) if unknown.any() else float("nan")


def open_set_scores(y_true: Any, y_pred: Any, unknown_label: Any) -> dict[str, float]:
    known, unk = _recalls(y_true, y_pred, unknown_label)
    os_star = float(known.mean())
    hos = 2*os_star*unk/(os_star+unk) if os_star+unk > 0 else 0.0
    return {"OS": float(np.append(known, unk).mean()), "OS*": os_star, "UNK": unk, "HOS": hos}
