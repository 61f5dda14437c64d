"""Pictures: features of a folder, and adaptation from one folder to another."""

from froda.images.extraction import extract
from froda.images.features import Features, load_features
from froda.images.networks import Network, load_network

__all__ = ["Features", "Network", "extract", "load_features", "load_network"]
