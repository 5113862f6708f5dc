"""MindSpore's import paths, each a row of a table, served by modules that look names up."""
