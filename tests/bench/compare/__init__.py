"""File systems side by side: what scripts/bench is made of."""
