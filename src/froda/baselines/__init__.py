"""Methods to compare with, behind the same door as the estimators."""

from froda.baselines.ati import ATI
from froda.baselines.coral import CORAL
from froda.baselines.gfk import GFK
from froda.baselines.oslpp import OSLPP
from froda.baselines.osnn import OSNN
from froda.baselines.pca_residual import PCAResidual
from froda.baselines.sa import SA
from froda.baselines.svm import LSVM, OSVM
from froda.baselines.tca import TCA

__all__ = ["ATI", "CORAL", "GFK", "LSVM", "OSLPP", "OSNN", "OSVM", "SA", "TCA", "PCAResidual"]
