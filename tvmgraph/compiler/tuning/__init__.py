"""The search over the decisions behind a kernel, and what it found."""
