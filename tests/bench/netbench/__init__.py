"""What the benchmarks on shaped links (clouds, link_drop) have in common."""
