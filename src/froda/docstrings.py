"""One text per setting and fitted attribute, joined into the docstrings of the estimators."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from textwrap import dedent, indent
from typing import TypeVar

SETTINGS = {
    "n_components": """
        n_components : int or "sdm", default="sdm"
            Dimension d of the shared basis, and of the private one where there is room.
            "sdm" takes the smallest d at which the subspace disagreement measure says that
            source and target part (see `froda.dimension.subspace_disagreement`).
        """,
    "alpha": """
        alpha : float, default=0.1
            Weight of the source reconstruction.
        """,
    "beta": """
        beta : float, default=0.01
            Weight of the label term, relative to the mean squared row norm of the source
            unless ``scaling="absolute"``.
        """,
    "lam": """
        lam : float, default=0.4
            Weight of the group penalty on the target codes, in root mean square row norms of
            the target (2 makes all codes zero) unless ``scaling="absolute"``.
        """,
    "lam_source": """
        lam_source : float, default=None
            Weight of the group penalty on the source codes; None takes ``lam``. Unless
            ``scaling="absolute"`` it is in root mean square row norms of the source and
            times ``alpha``, like the reconstruction it is weighed against.
        """,
    "epsilon": """
        epsilon : float or "auto", default=0.2
            A sample is flagged unknown when the norm of its shared code is at most
            ``epsilon`` times that of its private code. "auto" parts the target of the fit in
            two by Otsu's cut of the shares |Tu| / (|Tv| + |Tu|), and where the flagged samples
            train the head the upper part once more; it is 0.2 where all shares are the same.
        """,
    "head": """
        head : {heads} or classifier, default="svm"
            What labels the samples: a linear one-vs-one SVM or 3 nearest neighbours on the
            features{linear}. Any scikit-learn classifier is taken too.
        """,
    "decision": """
        decision : {"augmented", "flag"}, default="augmented"
            "augmented" trains the head on the source and the flagged target samples, as one
            class more, and lets it decide; "flag" trains it on the source alone and calls
            unknown just what is flagged.
        """,
    "constraint": """
        constraint : {"per_column", "total"}, default="per_column"
            Limit on the bases: each column of norm at most 1, or the norms of all columns
            summing to at most 1.
        """,
    "scaling": """
        scaling : {"relative", "absolute"}, default="relative"
            Whether the weights are relative to the size of the data, so that multiplying all
            features by a constant changes nothing, or taken literally.
        """,
    "row_sum": """
        row_sum : bool, default=True
            Divide each row by its sum of absolute values.
        """,
    "zscore": """
        zscore : bool, default=True
            Standardise each column within its domain; constant columns become zero.
        """,
    "unit_norm": """
        unit_norm : bool, default=True
            Then divide each row by its norm.
        """,
    "pca_variance": """
        pca_variance : float, default=0.99
            Share of the variance that the joint PCA of source and target keeps; None leaves
            the PCA out (and makes sparse input dense).
        """,
    "unknown_label": """
        unknown_label : object, default=None
            Label that means unknown, in ``y`` and in predictions; None takes -1 for numbers
            and "unknown" for strings.
        """,
    "max_iter": """
        max_iter : int, default=200
            Largest number of outer iterations.
        """,
    "tol": """
        tol : float, default=1e-4
            The loop stops when an iteration lowers the objective by no more than this share.
        """,
    "n_passes": """
        n_passes : int, default=None
            Go through the target so many times (2 or more) in place of up to ``max_iter``,
            updating the bases after every batch of rows; the last pass makes the codes exact.
            For rows that are many or slow to read: with 20 000, 3 passes came within 1 % of
            the objective of full iterations. Rows in a file should not be sorted by class.
        """,
    "chunk_size": """
        chunk_size : int, default=None
            Rows that are in memory at a time, in fit and in prediction. With None, memory
            maps, HDF5 and Zarr arrays above 256 MB and lists of arrays come in chunks, and
            everything else is read at once. No result depends on it.
        """,
    "head_rows": """
        head_rows : int, default=10_000
            Largest number of rows that train the head; where there are more, as many are
            drawn at random, by ``random_state`` or else always the same. None takes all.
        """,
    "checkpoint": """
        checkpoint : str or path, default=None
            Folder in which every iteration is stored. A fit of the same data with the same
            settings goes on from there and ends as if it had never stopped. Codes of rows
            that come in chunks are then kept in that folder, not in memory.
        """,
    "callback": """
        callback : callable, default=None
            Called with a `froda.factorization.problem.Record` after each iteration; a true
            return value stops the fit.
        """,
    "random_state": """
        random_state : int or RandomState, default=None
            Seed handed to a ``head`` that has one; the factorisation is deterministic.
        """,
    "verbose": """
        verbose : int, default=0
            Write a line per iteration to stderr when positive.
        """,
}

ATTRIBUTES = """
classes_ : array of shape (n_classes + 1,)
    The known classes in order, then the unknown label.
n_components_ : int
    Dimension of the shared basis.
disagreement_ : array
    Subspace disagreement measure for d = 1, 2, ... as far as it was needed; empty when
    ``n_components`` was given.
shared_basis_, private_basis_ : array of shape (n_kept, d)
    V and U, in the coordinates of the joint PCA.
epsilon_ : float
    The epsilon that decides: the one given, or the one found.
target_codes_ : array of shape (n_target, d + d_private)
    Codes of the target samples: shared, then private.
source_codes_ : array of shape (n_source, d)
    Codes of the source samples.
classifier_ : classifier or array
    The fitted head, or the learnt W with ``head="linear"``.
unknown_mask_ : array of bool of shape (n_target,)
    Target samples that the codes flag as unknown.
objective_ : list of (int, str, float)
    Iteration, block and value of the objective after it.
n_iter_ : int
    Number of outer iterations.
stop_reason_ : StopReason
    Why the loop stopped; its text says what to do about it.
n_features_in_ : int
    Number of columns of the source.
feature_names_in_ : array of str
    Column names, when the source had them.
"""

REFERENCE = """
.. [1] M. Baktashmotlagh, M. Faraki, T. Drummond, M. Salzmann, "Learning Factorized
   Representations for Open-Set Domain Adaptation", ICLR 2019.
"""

T = TypeVar("T", bound=type)


def document_settings(**replacements: str) -> Callable[[T], T]:
    """Fill {settings}, {attributes} and {reference} of a class docstring."""

    def fill(cls: T) -> T:
        names = [name for name in inspect.signature(cls).parameters if name in SETTINGS]
        texts = [dedent(SETTINGS[name]).strip() for name in names]
        settings = "\n".join(texts)
        for field, text in replacements.items():
            settings = settings.replace("{" + field + "}", text)
        filled = dedent(inspect.cleandoc(cls.__doc__ or ""))
        for field, text in (
            ("{settings}", settings),
            ("{attributes}", ATTRIBUTES.strip()),
            ("{reference}", REFERENCE.strip()),
        ):
            filled = filled.replace(field, text)
        cls.__doc__ = "\n" + indent(filled, "    ") + "\n    "
        return cls

    return fill
