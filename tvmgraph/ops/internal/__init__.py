"""Rows that only the compiler makes: graphs hold them after they were arranged for a processor."""
