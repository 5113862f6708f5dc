"""Reshaping, joining, splitting, padding and repeating."""
