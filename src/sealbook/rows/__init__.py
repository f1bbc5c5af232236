"""Sealed payloads into typed rows, and checks of their lines: Arrow, no Spark."""
