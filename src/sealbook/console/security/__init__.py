"""Who may ask the console, from where, and what an answer lets a browser do."""
