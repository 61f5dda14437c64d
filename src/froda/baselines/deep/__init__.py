"""Networks on given features: a bottleneck and a classifier, trained with PyTorch."""
