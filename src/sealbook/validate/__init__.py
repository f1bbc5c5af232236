"""Judging sealed runs: contracts held against raw partitions on Spark, verdicts with evidence."""
