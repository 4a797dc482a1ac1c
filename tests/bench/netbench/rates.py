"""Rates of links, drawn from the clouds of clouds.csv."""

import csv
import pathlib
import random

AT = [0.01, 0.25, 0.50, 0.75, 0.99]


def clouds():
    """Name to percentiles, Mbit/s."""
    text = (pathlib.Path(__file__).parent.parent / "clouds.csv").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {row["cloud"]: [float(row["p%d" % round(100 * a)]) for a in AT] for row in csv.DictReader(lines)}


def quantile(percentiles, q):
    """Straight lines through the percentiles; nothing beyond them."""
    q = min(max(q, AT[0]), AT[-1])
    for (q0, v0), (q1, v1) in zip(zip(AT, percentiles), zip(AT[1:], percentiles[1:])):
        if q <= q1:
            return v0 + (v1 - v0) * (q - q0) / (q1 - q0)
    return percentiles[-1]


def draw(percentiles, nodes, seed, total):
    """Mbit/s per node, scaled alike to that total; and the factor."""
    source = random.Random(seed)
    rates = [quantile(percentiles, source.random()) for _ in range(nodes)]
    factor = total / sum(rates)
    return [factor * r for r in rates], factor
