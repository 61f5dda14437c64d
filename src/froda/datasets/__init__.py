"""Data sets as plain arrays: source, target, and the labels that only a judge may see."""

from froda.datasets.digits import load_digits_pair
from froda.datasets.record import OpenSetTask

__all__ = ["OpenSetTask", "load_digits_pair"]
