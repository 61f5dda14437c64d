"""The records: consistent when made, and a method sees no more than it should."""

from __future__ import annotations

import gc
import pickle
from dataclasses import fields

import numpy as np
import pytest

from froda import DFRODAU
from froda.datasets import Domain, OpenSetTask, Visible, make_planted
from froda.metrics import open_set_scores

ANSWERS = ("y_target", "y_target_fine", "target_rows", "score", "class_names", "description")


@pytest.fixture
def task():
    return make_planted(n_source=80, n_target=700, n_features=20, n_shared=4, n_private=4).task()


def made(**changes):
    arguments = {
        "X": np.zeros((3, 2)),
        "y": np.array([0, 1, 1]),
        "name": "left",
        "class_names": ("a", "b"),
    }
    return Domain(**(arguments | changes))


def test_domain_keeps_its_origin():
    domain = made(licence="free", provenance="made up")
    assert (domain.n_classes, domain.licence, domain.provenance) == (2, "free", "made up")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"y": np.array([0, 1])},
            r"one label a row, got X of shape \(3, 2\) and y of shape \(2,\)",
        ),
        ({"X": np.zeros(3)}, "samples × features"),
        ({"y": np.array([0, 1, 2])}, "from 0 to 1"),
        ({"y": np.array([-1, 0, 1])}, "from 0 to 1"),
        ({"y": np.array([0.0, 1.0, 1.0])}, "whole numbers"),
        ({"class_names": ("a", "a")}, "a name twice"),
    ],
)
def test_inconsistent_domains_are_refused(changes, words):
    with pytest.raises(ValueError, match=f"domain 'left'.*{words}"):
        made(**changes)


def test_visible_is_what_fit_takes(task):
    visible = task.visible()
    assert visible._fields == ("X", "y", "X_target")
    for name in visible._fields:
        np.testing.assert_array_equal(getattr(visible, name), getattr(task, name))
    model = DFRODAU(n_components=4).fit(*visible)
    labels = model.predict(visible.X_target)
    found = task.score(labels, model.unknown_score(visible.X_target))
    assert found["HOS"] > 0.9
    assert found == open_set_scores(
        task.y_target,
        labels,
        model.unknown_score(visible.X_target),
        unknown_label=-1,
        fine_labels=task.y_target_fine,
    )


def test_visible_arrays_cannot_be_written_to(task):
    for column in task.visible():
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 0


def test_a_method_cannot_see_the_answers_through_its_arguments(task):
    class Curious:
        """Follows every reference that leaves its arguments."""

        def fit(self, *arguments):
            self.seen, waiting = [], list(arguments)
            known = {id(x) for x in waiting}
            while waiting:
                thing = waiting.pop()
                self.seen.append(thing)
                more = [*gc.get_referents(thing), getattr(thing, "base", None)]
                more += [getattr(thing, name, None) for name in ANSWERS]
                for other in more:
                    if other is not None and id(other) not in known:
                        if not isinstance(other, type):
                            waiting.append(other)
                        known.add(id(other))
            return self

    visible = task.visible()
    seen = Curious().fit(*visible).seen
    arrays = [thing for thing in seen if isinstance(thing, np.ndarray)]
    assert sorted(map(id, arrays)) == sorted(map(id, visible))
    assert not any(isinstance(thing, OpenSetTask | Domain) for thing in seen)
    for column in visible:
        assert column.base is None
        assert column.flags.owndata
        assert not any(np.shares_memory(column, getattr(task, f.name)) for f in ARRAYS)


ARRAYS = [f for f in fields(OpenSetTask) if f.name in {"X", "y", "X_target", "y_target"}]


def test_what_is_handed_over_has_no_room_for_the_answers(task):
    visible = task.visible()
    overhead = len(pickle.dumps(visible)) - sum(column.nbytes for column in visible)
    assert overhead < 600 < len(task.y_target)
    assert all(not hasattr(visible, name) for name in ANSWERS)
    assert not hasattr(visible, "__dict__")


def test_a_view_handed_to_a_task_does_not_lead_back():
    everything = np.arange(40.0).reshape(10, 4)
    task = OpenSetTask(everything[:4], np.arange(4), everything[4:6], np.zeros(2), -1, "views")
    assert all(column.base is None for column in task.visible())


def test_making_visible_writable_harms_nobody(task):
    before = task.X_target.copy()
    visible = task.visible()
    visible.X_target.setflags(write=True)
    visible.X_target[:] = 0
    np.testing.assert_array_equal(task.X_target, before)
    assert isinstance(visible, Visible)
