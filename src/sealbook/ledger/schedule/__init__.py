"""The schedule: who works on what, when, within which budget; and what operators want done."""
