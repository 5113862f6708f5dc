"""The version of MindSpore whose names and results are here, and the version of this package.

Programs that find the package under the name ``mindspore`` choose by the first one what to call.
"""

__version__ = "2.10.0"

PACKAGE = "0.1.0"
