"""The sources that Sealbook brings along; others are found by their entry points."""
