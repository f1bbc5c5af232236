"""The pages, a module for each; its `routes` are found by themselves."""
