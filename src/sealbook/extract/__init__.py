"""Extraction: sources that fetch rows, and what keeps them within limits and through passing failures."""
