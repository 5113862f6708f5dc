"""What this machine can do, measured."""
