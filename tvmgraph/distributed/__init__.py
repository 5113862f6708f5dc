"""One program on many processes: meshes, propagation of splits, collectives."""
