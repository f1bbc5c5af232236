"""Mirrors: what is published, as tables of Delta or Iceberg, which other engines read."""
