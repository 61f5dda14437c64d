"""Open-set domain adaptation for scikit-learn users."""

from froda.estimators import DFRODA, DFRODAU, FRODA

__all__ = ["DFRODA", "DFRODAU", "FRODA"]
