"""Open work: what is to be done next about partitions, in step with what becomes of them."""
