"""Artifacts: where they lie, their store, clean-up and verification."""
