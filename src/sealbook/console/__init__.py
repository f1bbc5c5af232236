"""The console: the same views as the command line, in a browser."""
