"""Methods to compare with, behind the same door as the estimators."""

from froda.baselines.ati import ATI
from froda.baselines.coral import CORAL
from froda.baselines.deep.bp import BP
from froda.baselines.deep.dan import DAN
from froda.baselines.deep.osbp import OSBP
from froda.baselines.deep.rtn import RTN
from froda.baselines.gfk import GFK
from froda.baselines.oslpp import OSLPP
from froda.baselines.osnn import OSNN
from froda.baselines.pca_residual import PCAResidual
from froda.baselines.sa import SA
from froda.baselines.svm import LSVM, OSVM
from froda.baselines.tca import TCA

__all__ = [
    "ATI",
    "BP",
    "CORAL",
    "DAN",
    "GFK",
    "LSVM",
    "OSBP",
    "OSLPP",
    "OSNN",
    "OSVM",
    "RTN",
    "SA",
    "TCA",
    "PCAResidual",
]
