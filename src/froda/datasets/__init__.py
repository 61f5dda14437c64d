"""Data sets as plain arrays: source, target, and the labels that only a judge may see."""

from froda.datasets.digits import load_digits_domain, load_digits_pair
from froda.datasets.files import load_file
from froda.datasets.loaders import DATASETS, DatasetEntry, dataset_domains, load_domain
from froda.datasets.protocols import Draw, Split, all_classes, make_task, named_split
from froda.datasets.record import Domain, OpenSetTask, Visible
from froda.datasets.synthetic import Planted, make_planted

__all__ = [
    "DATASETS",
    "DatasetEntry",
    "Domain",
    "Draw",
    "OpenSetTask",
    "Planted",
    "Split",
    "Visible",
    "all_classes",
    "dataset_domains",
    "load_digits_domain",
    "load_digits_pair",
    "load_domain",
    "load_file",
    "make_planted",
    "make_task",
    "named_split",
]
