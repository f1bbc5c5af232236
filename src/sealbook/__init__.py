"""Sealbook: which slice of a pipeline is safe to consume, and which run of it."""

__version__ = "0.1.0"
