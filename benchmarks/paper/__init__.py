"""Analyses of the paper, which `make paper` repeats."""
