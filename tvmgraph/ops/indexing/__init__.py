"""Reading and writing at positions: basic and advanced indexing, gather, scatter, segments."""
