"""Applications built on the estimators. The rest of the package does not import this subpackage."""

from ipaddress import ip_address


def is_loopback(host):
    """Return whether a host name or address refers to this machine."""
    try:
        return host == "localhost" or ip_address(host or "").is_loopback
    except ValueError:
        return False
