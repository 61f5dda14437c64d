"""Named splits against what the papers say, and tasks that know nothing of removed classes."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from froda import DFRODAU
from froda.datasets import DATASETS, Domain, Draw, Split, make_planted, make_task, named_split

OFFICE31 = DATASETS["office31"].class_names
LETTERS = tuple("abcdefghij")


def domain(name="left", classes=LETTERS, per_class=6, *, n_features=4, seed=0, leave_out=()):
    """Samples whose features tell the row and the class."""
    y = np.repeat(np.arange(len(classes)), per_class)
    y = y[~np.isin(y, [classes.index(c) for c in leave_out])]
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.arange(len(y)), y, rng.normal(size=(len(y), n_features - 2))])
    return Domain(X, y, name, classes)


def test_busto_is_the_published_split():
    split = named_split("busto", OFFICE31)
    assert len(OFFICE31) == 31
    assert tuple(sorted(OFFICE31)) == OFFICE31
    assert " ".join(split.known) == (
        "back_pack bike calculator headphones keyboard laptop_computer monitor mouse mug projector"
    )
    assert len(split.source_unknown) == 10
    assert (split.source_unknown[0], split.source_unknown[-1]) == ("bike_helmet", "paper_notebook")
    assert len(split.target_unknown) == 11
    assert (split.target_unknown[0], split.target_unknown[-1]) == ("pen", "trash_can")
    assert set(split.known + split.source_unknown + split.target_unknown) == set(OFFICE31)


def test_bcis_is_the_published_split():
    split = named_split("bcis", DATASETS["bcis"].class_names)
    numbers = [tuple(map(int, names)) for names in (split.known, split.source_unknown)]
    assert numbers == [tuple(range(1, 11)), tuple(range(11, 26))]
    assert split.target_unknown == tuple(map(str, range(26, 41)))
    assert split.draw.source == 50
    assert [split.draw.from_target(d) for d in ("bing", "sun")] == [30, 20]
    assert "50 source and 30 target a class, 20 from sun" in str(split)


@pytest.mark.parametrize(
    ("name", "n_known"), [("alphabetical-10-11", 10), ("alphabetical-20-11", 20)]
)
def test_alphabetical(name, n_known):
    split = named_split(name, OFFICE31[::-1])
    assert split.known == OFFICE31[:n_known]
    assert split.target_unknown == OFFICE31[20:]
    assert split.left_out == OFFICE31[n_known:20]
    assert split.source_unknown == ()


def test_positions():
    assert named_split("half", LETTERS).known == tuple("abcde")
    assert named_split("half", LETTERS[:9]).target_unknown == tuple("efghi")
    split = named_split("4-3-3", LETTERS)
    assert (split.known, split.source_unknown) == (tuple("abcd"), tuple("efg"))
    assert split.target_unknown == tuple("hij")
    pie = named_split("first-20", DATASETS["pie"].class_names)
    assert pie.known == tuple(map(str, range(1, 21)))
    assert pie.target_unknown == tuple(map(str, range(21, 68)))


def test_second_half_is_half_the_other_way_round():
    first, second = named_split("half", LETTERS), named_split("second-half", LETTERS)
    assert (second.known, second.target_unknown) == (first.target_unknown, first.known)
    assert second.source_unknown == ()


def test_random_unknown_classes_leave_the_others_out():
    split = named_split("random-3-known-4-unknown", LETTERS, seed=7)
    assert (len(split.known), len(split.target_unknown), len(split.left_out)) == (3, 4, 3)
    assert set(split.known + split.target_unknown + split.left_out) == set(LETTERS)
    assert split != named_split("random-3-known-4-unknown", LETTERS, seed=8)
    assert named_split("random-3-known-7-unknown", LETTERS).left_out == ()


def test_random_splits_depend_on_the_seed_alone():
    split = named_split("random-4-known-3-source", LETTERS, seed=7)
    assert split == named_split("random-4-known-3-source", LETTERS, seed=7)
    assert split != named_split("random-4-known-3-source", LETTERS, seed=8)
    parts = split.known, split.source_unknown, split.target_unknown
    assert [len(part) for part in parts] == [4, 3, 3]
    assert set(sum(parts, ())) == set(LETTERS)
    assert "seed 7" in str(split)
    assert named_split("random-4-known", LETTERS, seed=7).source_unknown == ()


@pytest.mark.parametrize(
    ("name", "classes"),
    [
        ("busto", OFFICE31),
        ("bcis", DATASETS["bcis"].class_names),
        ("4-3-3", LETTERS),
        ("random-4-known-3-source", LETTERS),
    ],
)
def test_every_split_with_source_unknowns_is_there_without(name, classes):
    with_them = named_split(name, classes, seed=5)
    without = named_split(f"{name}-without-source-unknown", classes, seed=5)
    assert with_them.source_unknown
    assert without.source_unknown == ()
    assert without.left_out == with_them.source_unknown
    assert (without.known, without.target_unknown) == (with_them.known, with_them.target_unknown)
    assert (without.draw, without.note) == (with_them.draw, with_them.note)
    assert f"split {name}-without-source-unknown: known" in str(without)
    domains = [domain(side, classes, seed=k) for k, side in enumerate(("left", "right"))]
    one, other = (make_task(*domains, split, 3) for split in (with_them, without))
    assert_array_equal(other.X, one.X[one.y != -1])
    assert_array_equal(other.y, one.y[one.y != -1])
    assert_array_equal(other.X_target, one.X_target)
    assert_array_equal(other.y_target, one.y_target)


def test_the_text_is_one_line_that_says_it_all():
    assert str(named_split("4-3-3", LETTERS)) == (
        "split 4-3-3: known 4 (a … d); source unknown 3 (e, f, g); target unknown 3 (h, i, j)"
    )
    assert "left out 10 (" in str(named_split("alphabetical-10-11", OFFICE31))


@pytest.mark.parametrize(
    ("name", "classes", "words"),
    [
        ("thirds", LETTERS, "there is no split 'thirds'; there are: busto, bcis"),
        ("busto", LETTERS, "'busto' is for the 31 classes of Office-31, got 10"),
        ("busto", tuple(map(str, range(31))), "needs the class 'back_pack'"),
        ("bcis", LETTERS, "the 40 classes"),
        ("alphabetical-20-11", LETTERS, "the 31 classes"),
        ("4-3-3", LETTERS[:8], "'4-3-3' is for 10 classes, got 8"),
        ("first-10", LETTERS, "more than 10 classes, got 10"),
        ("random-9-known-1-source", LETTERS, "more than 10 classes"),
        ("first-1", LETTERS, "at least two known"),
        ("half-without-source-unknown", LETTERS, "no unknown classes in the source to go without"),
        ("thirds-without-source-unknown", LETTERS, "there is no split 'thirds-without"),
    ],
)
def test_splits_that_do_not_fit_are_refused(name, classes, words):
    with pytest.raises(ValueError, match=words):
        named_split(name, classes)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((("a", "b"), ("b",), ()), "b both in known and in source_unknown"),
        ((("a", "b"), (), ("a",)), "a both in known and in target_unknown"),
        ((("a", "b"), ("c",), (), ("c",)), "c both in source_unknown and in left_out"),
        ((("a", "a"), (), ()), "known has a class twice"),
    ],
)
def test_contradictions_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        Split("mine", *arguments)


def test_split_is_frozen():
    with pytest.raises(FrozenInstanceError):
        named_split("half", LETTERS).known = ("a", "b")


def test_task_selects_and_labels():
    source, target = domain(), domain("right", seed=1)
    task = make_task(source, target, "4-3-3")
    assert_array_equal(task.y, np.where(task.X[:, 1] < 4, task.X[:, 1], -1))
    assert set(task.X[:, 1]) == set(range(7))
    assert set(task.X_target[:, 1]) == {0, 1, 2, 3, 7, 8, 9}
    assert_array_equal(task.X_target, target.X[task.target_rows])
    assert_array_equal(
        np.array(task.class_names)[task.y_target_fine],
        np.array(LETTERS)[task.X_target[:, 1].astype(int)],
    )
    known = task.y_target_fine < 4
    assert_array_equal(task.y_target, np.where(known, task.y_target_fine, -1))
    assert "left to right; split 4-3-3: known 4" in task.description
    assert task.unknown_label == -1


def test_labels_are_places_in_the_split_and_classes_match_by_name():
    target = domain("right", classes=LETTERS[::-1])
    split = Split("mine", ("c", "a"), ("b",), ("j",), left_out=tuple("defghi"))
    task = make_task(domain(), target, split)
    assert dict(zip(task.X[:, 1], task.y, strict=True)) == {2: 0, 0: 1, 1: -1}
    pairs = dict(zip(task.X_target[:, 1], task.y_target, strict=True))
    assert pairs == {7: 0, 9: 1, 0: -1}


def test_removed_classes_do_not_influence_the_task():
    def changed(domain, places):
        X = domain.X.copy()
        X[np.isin(domain.y, places)] = 1e9
        return Domain(X, domain.y, domain.name, domain.class_names)

    source, target = domain(n_features=12), domain("right", n_features=12, seed=1)
    plain = make_task(source, target, "4-3-3")
    for_source, for_target = changed(source, [7, 8, 9]), changed(target, [4, 5, 6])
    other = make_task(for_source, for_target, "4-3-3")
    assert_array_equal(plain.X, other.X)
    assert_array_equal(plain.X_target, other.X_target)
    scores = [
        DFRODAU(n_components=2).fit(*task.visible()).unknown_score(task.X_target)
        for task in (plain, other)
    ]
    assert_array_equal(*scores)
    # what the task prevents: a z-score of the whole domain is another one
    kept = source.X[:, 2:][source.y < 7]
    assert not np.allclose(for_source.X[:, 2:].mean(axis=0), kept.mean(axis=0))


def test_the_order_of_target_rows_tells_nothing():
    task = make_task(domain(per_class=30), domain("right", per_class=30), "half", seed=3)
    again = make_task(domain(per_class=30), domain("right", per_class=30), "half", seed=3)
    assert_array_equal(task.target_rows, again.target_rows)
    assert abs(np.corrcoef(np.arange(300), task.y_target_fine)[0, 1]) < 0.3
    other = make_task(domain(per_class=30), domain("right", per_class=30), "half", seed=4)
    assert not np.array_equal(task.target_rows, other.target_rows)
    assert_array_equal(task.X, other.X)


def test_draws_are_seeded_and_per_class():
    classes = DATASETS["bcis"].class_names
    source = domain("bing", classes, per_class=60)
    task = make_task(source, domain("caltech256", classes, per_class=60), "bcis", seed=1)
    assert np.unique(task.X[:, 1], return_counts=True)[1].tolist() == [50] * 25
    assert np.unique(task.X_target[:, 1], return_counts=True)[1].tolist() == [30] * 25
    other = make_task(source, domain("sun", classes, per_class=60), "bcis", seed=1)
    assert np.unique(other.X_target[:, 1], return_counts=True)[1].tolist() == [20] * 25
    assert_array_equal(task.X, other.X)
    draws = {
        make_task(source, domain("sun", classes, per_class=60), "bcis", seed=k).X[:, 0].tobytes()
        for k in range(5)
    }
    assert len(draws) == 5
    assert "seed 1" in task.description
    assert "fewer" not in task.description


def test_a_class_with_too_few_samples_gives_all_and_says_so():
    split = Split("mine", ("a", "b"), (), ("c",), tuple("defghij"), Draw(5, 9))
    task = make_task(domain(), domain("right"), split)
    assert (len(task.X), len(task.X_target)) == (10, 18)
    assert task.description.endswith("fewer in the target: a 6, b 6, c 6")


@pytest.mark.parametrize(
    ("source", "target", "words"),
    [
        (domain(leave_out="b"), domain("right"), "'b' .*known.* absent from the source .*'left'"),
        (
            domain(),
            domain("right", leave_out="a"),
            "'a' .*known.* absent from the target .*'right'",
        ),
        (domain(leave_out="f"), domain("right"), "'f' .*source unknown.* absent .*'left'"),
        (domain(), domain("right", leave_out="j"), "'j' .*target unknown.* absent .*'right'"),
        (domain(), domain("right", n_features=5), "'left' has 4 features .*'right' 5"),
    ],
)
def test_classes_that_are_absent_are_refused(source, target, words):
    with pytest.raises(ValueError, match=words):
        make_task(source, target, "4-3-3")


def test_an_absent_class_is_reported_with_the_file():
    whole = domain(leave_out="b")
    read = Domain(whole.X, whole.y, "left", LETTERS, provenance="somebody, 2012; file left.mat")
    with pytest.raises(ValueError, match=r"It was read from file left\.mat\. Complete it, or"):
        make_task(read, domain("right"), "half")


def test_a_class_outside_the_split_is_refused():
    split = Split("mine", ("a", "b"), (), ("c",), left_out=tuple("defgh"))
    with pytest.raises(ValueError, match="source domain 'left' has samples of classes 'i', 'j'"):
        make_task(domain(), domain("right"), split)
    with pytest.raises(ValueError, match="target domain 'right' has samples of class 'j', which"):
        make_task(domain(leave_out="ij"), domain("right", leave_out="i"), split)
    with pytest.raises(ValueError, match=r"'z' of split 'other' .*known.* is absent"):
        make_task(domain(), domain("right"), Split("other", ("a", "z"), (), ()))


def test_class_that_may_be_absent_elsewhere():
    task = make_task(domain(leave_out="hij"), domain("right", leave_out="efg"), "4-3-3")
    assert len(task.X) == 7 * 6


def test_a_class_may_be_unknown_in_both_domains():
    split = Split("mine", tuple("abcd"), tuple("efg"), tuple("efghij"))
    task = make_task(domain(), domain("right"), split)
    assert (task.y == -1).sum() == 18
    assert len(np.unique(task.y_target_fine)) == 10


def test_the_task_of_planted_domains():
    task = make_planted().task(seed=2)
    assert set(task.y) == {-1, 0, 1, 2, 3, 4}
