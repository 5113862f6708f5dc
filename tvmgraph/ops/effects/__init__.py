"""Assignment and printing."""
