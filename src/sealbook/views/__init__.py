"""What is gathered for people and programs: one structure for the terminal, JSON and a page."""
