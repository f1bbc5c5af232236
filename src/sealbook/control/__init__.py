"""The control plane: which partitions are worked on, and when (R-CTL-1)."""
