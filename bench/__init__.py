"""Benchmarks: each states its work and its baseline, and prints ratios measured in one run."""
