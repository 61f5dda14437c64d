"""Comparisons: which methods, which jobs, results on disk, tables and figures made of them."""
