"""Functions in pieces: compiled segments between statements that only plain Python can run."""
