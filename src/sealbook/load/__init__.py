"""The loader: accepted runs become artifacts, and pointers are swapped to them (R-WH)."""
