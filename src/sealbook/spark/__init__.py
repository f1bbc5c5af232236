"""Spark: the session, its tasks, and raw partitions as rows. Import its modules where they are used."""
