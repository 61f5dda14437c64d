"""From codes to known and unknown."""

from __future__ import annotations

import numpy as np
import pytest

from froda import openset
from froda.factorization import codes
from froda.openset import otsu_cut

EPSILON = 0.2
LAM = 2.0


@pytest.fixture
def basis(rng):
    """Two subspaces of dimension 3 and 2 that are not orthogonal."""
    V = np.linalg.qr(rng.standard_normal((8, 3)))[0]
    U = np.linalg.qr(rng.standard_normal((8, 2)) + 0.5 * V[:, :2])[0]
    return np.hstack([V, U])


def judge(basis, X, epsilon=EPSILON, tol=1e-13):
    """Return verdict and codes of rows."""
    prepared = codes.prepare(basis.T @ basis, (3, 2), LAM)
    cross = X @ basis
    found = codes.update(prepared, cross, tol=tol)
    return openset.judge(prepared, cross, found, epsilon), found


def group_norms(found):
    return np.linalg.norm(found[:, :3], axis=1), np.linalg.norm(found[:, 3:], axis=1)


def mixtures(rng, basis, n_rows=4_000):
    """Return rows of every kind: shared, private, both, next to nothing."""
    weights = rng.standard_normal((n_rows, 5)) * 10 ** rng.uniform(-1.5, 1.5, (n_rows, 1))
    share = rng.random((n_rows, 1)) ** 3
    swap = rng.random(n_rows) < 0.5
    share = np.where(swap[:, None], 1 - share, share)
    weights[:, :3] *= share
    weights[:, 3:] *= 1 - share
    return weights @ basis.T + 0.1 * rng.standard_normal((n_rows, 8))


def test_the_rule_is_that_of_the_paper(rng, basis):
    """|Tv| <= epsilon |Tu| means unknown; both zero does too."""
    verdict, found = judge(basis, mixtures(rng, basis))
    shared, private = group_norms(found)
    np.testing.assert_array_equal(verdict.is_unknown, shared <= EPSILON * private)
    neither = (shared == 0) & (private == 0)
    assert neither.sum() > 10
    assert verdict.is_unknown[neither].all()


@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.2, 1.0, 5.0])
def test_flagged_iff_the_score_reaches_the_threshold(rng, basis, epsilon):
    verdict, found = judge(basis, mixtures(rng, basis), epsilon)
    shared, private = group_norms(found)
    some = (shared > 0) | (private > 0)
    assert 50 < verdict.is_unknown[some].sum() < some.sum() - 50
    np.testing.assert_array_equal(
        verdict.is_unknown[some], verdict.score[some] >= openset.threshold(epsilon)
    )


def test_flagged_iff_the_score_reaches_the_threshold_without_codes(rng, basis):
    verdict, found = judge(basis, mixtures(rng, basis))
    neither = ~found.any(axis=1)
    assert neither.sum() > 10
    assert np.all(verdict.score[neither] >= openset.threshold(EPSILON))


def test_score_is_the_private_share_where_both_groups_are_there(rng, basis):
    verdict, found = judge(basis, mixtures(rng, basis))
    shared, private = group_norms(found)
    both = (shared > 0) & (private > 0)
    assert both.sum() > 100
    np.testing.assert_allclose(
        verdict.score[both], private[both] / (private[both] + shared[both]), rtol=1e-12
    )
    order = np.argsort(shared[both] / private[both])
    assert np.all(np.diff(verdict.score[both][order]) <= 0)  # falls as the paper's ratio grows


def test_zero_groups_are_ranked_by_how_far_they_are_from_entering(rng, basis):
    """Scores above 1 (below 0) where the shared (private) group is zero; hardly any ties."""
    X = mixtures(rng, basis)
    verdict, found = judge(basis, X)
    shared, private = group_norms(found)
    only_private = (shared == 0) & (private > 0)
    only_shared = (shared > 0) & (private == 0)
    assert only_private.sum() > 100
    assert only_shared.sum() > 100
    rest = X - found @ basis.T  # the other group's part is already taken out
    pull = 2 * np.linalg.norm(rest @ basis[:, :3], axis=1) / LAM
    np.testing.assert_allclose(verdict.score[only_private], 2 - pull[only_private], rtol=1e-9)
    pull = 2 * np.linalg.norm(rest @ basis[:, 3:], axis=1) / LAM
    np.testing.assert_allclose(verdict.score[only_shared], pull[only_shared] - 1, atol=1e-9)
    assert len(np.unique(verdict.score)) > 0.99 * len(X)
    assert verdict.score.min() >= -1
    assert verdict.score.max() <= 2


@pytest.mark.parametrize("crossing", ["shared enters", "private enters", "private enters alone"])
def test_score_is_continuous_where_a_group_enters(basis, crossing):
    """Along a line of samples: no step is larger than what the step of the samples explains.

    The one jump that the paper's rule forces (both groups zero is unknown, the shared one
    alone is known) is left out.
    """
    V, U = basis[:, :3], basis[:, 3:]
    line = np.linspace(0, 1, 2_001)[:, None]
    shared, private = 6 * V[:, 0] + V[:, 1], 6 * U[:, 1]
    X = {
        "shared enters": private + line * shared,
        "private enters": shared + line * private,
        "private enters alone": 0.5 * line * private,
    }[crossing]
    verdict, found = judge(basis, X)
    present = np.stack(group_norms(found), axis=1) > 0
    assert len(np.unique(present, axis=0)) > 1  # a group does enter on the way
    steps = np.abs(np.diff(verdict.score))
    assert steps.max() < 0.01
    assert np.ptp(verdict.score) > 0.05


def test_a_sample_with_no_codes_never_divides(basis):
    verdict, found = judge(basis, np.zeros((2, 8)))
    assert not found.any()
    assert verdict.is_unknown.all()
    assert np.isfinite(verdict.score).all()


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 3.0])
def test_threshold_is_the_share_at_ratio_epsilon(epsilon):
    private = 2.0
    shared = epsilon * private
    assert openset.threshold(epsilon) == pytest.approx(private / (private + shared))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_known", [1, 4])
def test_overrule_makes_the_largest_column_follow_the_flag(rng, dtype, n_known):
    """For scores of any size, and where the unknown column is far below all others."""
    size = 10 ** rng.uniform(-6, 6, (300, 1))
    scores = (size * rng.standard_normal((300, n_known + 1))).astype(dtype)
    scores[:, -1] = scores.min(axis=1) - size[:, 0]
    is_unknown = rng.random(300) < 0.5
    score = np.where(is_unknown, 0.9, 0.1) + 0.05 * rng.random(300)
    score[:5] = openset.threshold(EPSILON)
    is_unknown[:5] = True  # exactly at the threshold: no margin
    verdict = openset.Verdict(score.astype(dtype), is_unknown)
    before = scores.copy()
    scores.flags.writeable = False
    after = openset.overrule(scores, verdict, EPSILON)
    assert after.dtype == dtype
    np.testing.assert_array_equal(after.argmax(axis=1) == n_known, is_unknown)
    np.testing.assert_array_equal(after[:, :-1], before[:, :-1])
    np.testing.assert_array_equal(after[~is_unknown], before[~is_unknown])


def test_overrule_keeps_a_classifier_that_knows_the_unknown_class():
    """Without a flag the unknown column may still win if the classifier puts it on top."""
    scores = np.array([[0.2, 0.1, 0.7], [0.2, 0.1, 0.7]])
    verdict = openset.Verdict(np.array([0.1, 1.5]), np.array([False, True]))
    after = openset.overrule(scores, verdict, EPSILON)
    np.testing.assert_array_equal(after[0], scores[0])
    assert after[1, 2] > 0.7


def test_overrule_lifts_more_where_the_margin_is_larger():
    scores = np.tile([0.3, 0.6, -1.0], (3, 1))
    verdict = openset.Verdict(np.array([0.9, 1.2, 1.9]), np.array([True, True, True]))
    lifted = openset.overrule(scores, verdict, EPSILON)[:, -1]
    np.testing.assert_allclose(lifted, 0.6 + verdict.score - openset.threshold(EPSILON))


def between_groups(values, cut):
    """Return the variance between the groups below and above a cut, by its definition."""
    low, high = values[values <= cut], values[values > cut]
    centre = values.mean()
    return len(low) * (low.mean() - centre) ** 2 + len(high) * (high.mean() - centre) ** 2


@pytest.mark.parametrize("n", [2, 3, 10, 57])
def test_the_cut_is_the_best_of_all_cuts(rng, n):
    values = np.concatenate([rng.normal(size=n), rng.normal(size=n // 2) + 4])
    ordered = np.sort(values)
    best = max(between_groups(values, cut) for cut in (ordered[1:] + ordered[:-1]) / 2)
    np.testing.assert_allclose(between_groups(values, otsu_cut(values)), best)


def test_values_that_are_all_the_same_have_no_cut():
    assert otsu_cut(np.full(7, 0.3)) == np.inf
    assert otsu_cut(np.array([1.0])) == np.inf


def test_the_found_epsilon_parts_the_shares_at_their_cut(rng, basis):
    _, found = judge(basis, mixtures(rng, basis))
    shares = openset.PrivateShare((3, 2))(None, found)
    shared, private = group_norms(found)
    some = shared + private > 0
    np.testing.assert_allclose(shares[some], private[some] / (private + shared)[some])
    np.testing.assert_array_equal(shares[~some], 1)
    cut = otsu_cut(shares)
    second = otsu_cut(shares[shares > cut])
    assert cut < second < 1
    for surest, expected in ((False, cut), (True, second)):
        epsilon = openset.epsilon_of(shares, surest=surest)
        assert openset.threshold(epsilon) == pytest.approx(expected)
        np.testing.assert_array_equal(shared <= epsilon * private, shares > expected)


@pytest.mark.parametrize("surest", [False, True])
def test_shares_without_a_cut_leave_the_usual_epsilon(surest):
    assert openset.epsilon_of(np.ones(5), surest=surest) == 0.2
    assert openset.epsilon_of(np.array([0.0, 0, 1, 1]), surest=surest) == 1  # one cut, no second
