"""Spark: the session, and the data source of raw partitions. Import its modules where they are used."""
