"""Methods to compare with, behind the same door as the estimators."""

from froda.baselines.svm import LSVM, OSVM

__all__ = ["LSVM", "OSVM"]
