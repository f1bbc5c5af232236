"""What is known of every partition, gathered for whoever asks."""
