"""The warehouse: artifacts staged from accepted runs, published by pointers, and what readers see of them."""
