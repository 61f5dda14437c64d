"""Linear SVMs without adaptation: LSVM never rejects by doubt, OSVM does."""

from __future__ import annotations

from froda.door import SVMBaseline, document_shared


@document_shared
class LSVM(SVMBaseline):
    """Linear one-vs-one SVM on the source; unknown only where the source has unknown classes.

    Parameters
    ----------
    {shared_settings}

    Attributes
    ----------
    classifier_ : SVC
        The linear SVM on the source.
    {shared_attributes}

    Examples
    --------
    >>> import numpy as np
    >>> from froda.baselines import LSVM
    >>> X = np.random.default_rng(0).normal(size=(40, 5)) + np.repeat([[0], [3]], 20, axis=0)
    >>> y = np.repeat([0, 1], 20)
    >>> sorted(set(LSVM(row_sum=False).fit_predict(X, y, X + 1).tolist()))
    [0, 1]
    """

    _rejects = False


@document_shared
class OSVM(SVMBaseline):
    """Linear one-vs-one SVM on the source that rejects what it doubts.

    Parameters
    ----------
    {shared_settings}

    Attributes
    ----------
    classifier_ : SVC
        The linear SVM on the source.
    {shared_attributes}

    Examples
    --------
    >>> import numpy as np
    >>> from froda.baselines import OSVM
    >>> X = np.random.default_rng(0).normal(size=(40, 5)) + np.repeat([[0], [3]], 20, axis=0)
    >>> y = np.repeat([0, 1], 20)
    >>> OSVM(row_sum=False).fit(X, y, X + 1).classes_.tolist()
    [0, 1, -1]
    """
