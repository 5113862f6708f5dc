"""What rows of several families share: arguments, samples, formulas of elements, windows."""
