"""Reductions, scans and statistics along axes."""
