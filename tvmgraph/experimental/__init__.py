"""MindSpore's ``mindspore.experimental``: optimizers whose groups may change, as in PyTorch."""
