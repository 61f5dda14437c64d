"""Open-set domain adaptation for scikit-learn users."""

from importlib.metadata import version

from froda.estimators import DFRODA, DFRODAU, FRODA
from froda.progressive.estimator import ProgressiveMixture

__version__ = version("froda")

__all__ = ["DFRODA", "DFRODAU", "FRODA", "ProgressiveMixture", "__version__"]
