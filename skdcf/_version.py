"""The version, in a file of its own, since modules read it and none imports the package."""

__version__ = "0.1.0"
