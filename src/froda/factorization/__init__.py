"""The factorisation: problem, objective, one file for each sub-problem, one outer loop."""
