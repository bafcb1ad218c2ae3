"""The network addresses of callers."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv6Address, ip_address

from starlette.types import Scope


def client_address(scope: Scope) -> str | None:
    """Return the address forwarded by a trusted proxy, else the connection's. None if it is no IP address."""
    client = scope.get("client")
    return None if client is None else _address(client[0])


def network_of(client: tuple[str, int] | None) -> str:
    """For IPv6 return its /64 network, which usually belongs to one host."""
    try:
        address = ip_address(client[0] if client else "")
    except ValueError:
        return ""
    if isinstance(address, IPv6Address) and address.ipv4_mapped is None:
        return address.packed[:8].hex()
    return str(getattr(address, "ipv4_mapped", None) or address)


@lru_cache(maxsize=1024)
def _address(host: str) -> str | None:
    try:
        return str(ip_address(host))
    except ValueError:
        return None
