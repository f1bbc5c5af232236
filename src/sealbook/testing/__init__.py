"""Behaviour suites that adapters run against themselves. Importing them needs no test framework."""
