"""The version, in a separate file so that modules can read it without importing the package."""

__version__ = "0.1.0"
