"""Version of the package, in a separate file so modules can read it without importing skdcf."""

__version__ = "0.1.0"
