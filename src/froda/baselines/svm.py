"""Linear SVMs without adaptation: LSVM never rejects by doubt, OSVM does."""

from __future__ import annotations

from froda.baselines.base import SVMBaseline


class LSVM(SVMBaseline):
    """Linear one-vs-one SVM on the source; unknown only where the source has unknown classes."""

    _rejects = False


class OSVM(SVMBaseline):
    """Linear one-vs-one SVM that rejects what it doubts."""
