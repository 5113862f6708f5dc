"""Random numbers, distributions and dropout."""
