"""Functions with graph breaks: compiled segments between statements that only Python can run."""
