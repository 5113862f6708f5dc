"""The machine that code is made for and runs on: processors, targets, workers, tiles."""
