"""Types, the operator row and table, the one dispatch point, Tensor and Parameter."""
