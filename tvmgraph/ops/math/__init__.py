"""Functions of numbers: exponential, trigonometric, special."""
