"""Addresses and URLs that the service may contact for its users: none inside the operator's network.

`ipaddress.is_global` is no answer: Python 3.11 calls `64:ff9b::7f00:1`, `2002:7f00:1::` and `::127.0.0.1` global, which
all contain 127.0.0.1, and no version knows `168.63.129.16`. So the list is ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from app.platform.errors import shown

Address: TypeAlias = IPv4Address | IPv6Address
Networks: TypeAlias = tuple[IPv4Network | IPv6Network, ...]

MAX_NETWORKS = 100
MAX_URL = 2000
"""Most characters of a URL, as given and with its host in ASCII."""
MAX_HOST = 253
PORTS = {"http": 80, "https": 443}

_NEVER = tuple(
    map(
        ip_network,
        (
            "0.0.0.0/8",
            "168.63.129.16/32",  # Azure's metadata and DNS, an address that is public otherwise
            "169.254.169.254/32",  # metadata of AWS, Google, Azure and others
            "169.254.170.0/24",  # credentials of containers and pods on AWS
            "100.100.100.200/32",  # metadata of Alibaba
            "224.0.0.0/4",
            "255.255.255.255/32",
            "::/128",
            "fd00:ec2::/32",  # metadata and DNS of AWS
            "fd20:ce::254/128",  # metadata of Google
            "ff00::/8",
        ),
    )
)
"""Unspecified, multicast, broadcast and metadata: refused even inside an allowed network."""

_SPECIAL_IPV4 = tuple(
    IPv4Network(each)
    for each in (
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "240.0.0.0/4",
    )
)
"""IANA's registry of special-purpose IPv4 addresses, except the addresses in `_NEVER`."""

_GLOBAL_IPV6 = IPv6Network("2000::/3")
"""All that IANA has assigned for use across the internet. Everything else is refused."""
_SPECIAL_IPV6 = tuple(
    IPv6Network(each)
    for each in (
        "2001::/23",  # protocols, among them Teredo and ORCHID
        "2001:db8::/32",
        "2002::/16",  # 6to4, which contains an IPv4 address
        "2620:4f:8000::/48",
        "3fff::/20",
    )
)
"""IANA's registry of special-purpose IPv6 addresses, those within `_GLOBAL_IPV6`."""
_ISATAP = (0x00005EFE, 0x02005EFE)
"""The third quarter of an address whose last quarter is an IPv4 address to which an ISATAP router sends."""

_MAPPED = IPv6Network("::ffff:0:0/96")
_NAT64 = IPv6Network("64:ff9b::/96")
"""How a network without IPv4 reaches an IPv4 address."""
_PREFIXES = frozenset(
    int(IPv6Address(each)) >> 32 for each in ("::ffff:0:0", "64:ff9b::", "::", "::ffff:0:0:0")
)
"""First 96 bits of addresses whose last 32 are an IPv4 address: mapped, NAT64, compatible, translated."""


def plain(address: Address) -> Address:
    """Return the IPv4 address inside a mapped or NAT64 address; any other as it is."""
    if isinstance(address, IPv6Address) and (address in _MAPPED or address in _NAT64):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def _contained(address: Address) -> list[IPv4Address]:
    """Return IPv4 addresses that a router, tunnel or translator may reach by an IPv6 address."""
    if isinstance(address, IPv4Address) or address.is_loopback:  # ::1 does not contain 0.0.0.1
        return []
    found = []
    if int(address) >> 32 in _PREFIXES or int(address) >> 32 & 0xFFFFFFFF in _ISATAP:
        found.append(IPv4Address(int(address) & 0xFFFFFFFF))
    if address.sixtofour is not None:
        found.append(address.sixtofour)
    if address.teredo is not None:
        found += address.teredo
    return found


def _is_never_allowed(address: Address) -> bool:
    return any(each in network for network in _NEVER for each in (address, *_contained(address)))


def is_in(address: Address, networks: Iterable[IPv4Network | IPv6Network]) -> bool:
    """Check the IPv4 address that it stands for, too."""
    found = plain(address)
    return any(each in network for network in networks for each in (address, found))


def is_public(address: Address) -> bool:
    """Return False for internal and special addresses, and a cloud's metadata."""
    found = plain(address)
    if _is_never_allowed(address):
        return False
    if isinstance(found, IPv4Address):
        return not is_in(found, _SPECIAL_IPV4)
    return (
        found.scope_id is None
        and found in _GLOBAL_IPV6
        and not is_in(found, _SPECIAL_IPV6)
        and int(found) >> 32 & 0xFFFFFFFF not in _ISATAP
    )


def is_allowed(address: Address, networks: Networks, scheme: str) -> bool:
    """Allow public addresses by https, and all of `networks`."""
    if is_in(address, networks):
        return not _is_never_allowed(address)
    return scheme == "https" and is_public(address)


def parse_networks(given: str) -> Networks:
    """Parse CIDR notation, separated by commas. Raises ValueError."""
    items = [each.strip() for each in given.split(",") if each.strip()]
    if len(items) > MAX_NETWORKS:
        raise ValueError(f"must be at most {MAX_NETWORKS} networks, got {len(items):,}")
    found = []
    for item in items:
        try:
            if "%" in item:
                raise ValueError
            found.append(ip_network(item))
        except ValueError:
            raise ValueError(
                f"must be networks such as 10.1.0.0/16,fd00:1::/64, without host bits, got {item[:100]!r}"
            ) from None
    return tuple(found)


@dataclass(frozen=True, slots=True)
class HttpUrl:
    """A URL in the only form in which the service uses it: no second parser can read it differently."""

    scheme: Literal["http", "https"]
    host: str
    """ASCII and lowercase; an IPv6 address without brackets."""
    port: int
    target: str
    """Path and query."""

    @property
    def address(self) -> Address | None:
        """None if the host is a name."""
        try:
            return ip_address(self.host)
        except ValueError:
            return None

    @property
    def authority(self) -> str:
        """As in a request line: without the scheme's own port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


def parse_url(given: str) -> HttpUrl:
    """Parse an http:// or https:// URL, without looking up names. Raises ValueError, which says what is wrong."""
    if len(given) > MAX_URL:
        raise ValueError(f"must have at most {MAX_URL:,} characters, got {len(given):,}")
    # urlsplit removes tabs and line feeds, and other parsers read \ as /
    if re.search(r"[\x00-\x20\x7f-\xa0\\]", given):
        raise ValueError(
            f"must have no spaces, control characters or backslashes, got {shown(given)}"
        )
    try:
        parts = urlsplit(given)
        port = parts.port
    except ValueError:
        raise ValueError(
            f"must be a URL with a host and a port up to 65535, got {shown(given)}"
        ) from None
    if parts.scheme not in PORTS:
        raise ValueError(f"must begin with https:// or http://, got {shown(given)}")
    if "@" in parts.netloc:
        raise ValueError("must have no user and no password")
    if "#" in given:
        raise ValueError(f"must have no fragment (#), got {shown(given)}")
    if port == 0 or parts.netloc.endswith(":"):
        raise ValueError(f"must have a port from 1 to 65535, or none, got {shown(given)}")
    target = (parts.path or "/") + ("?" + parts.query if "?" in given else "")
    if not re.fullmatch(r"/[A-Za-z0-9._~:/?\[\]@!$&'()*+,;=%-]*", target):
        raise ValueError(
            "must have a path and query of the characters that a URL may have; encode others as %XX, "
            f"got {shown(given)}"
        )
    bracketed = parts.netloc.startswith("[")
    if bracketed and not re.fullmatch(r"\[[^\[\]]*\](:[0-9]+)?", parts.netloc):
        raise ValueError(f"must have an IPv6 address in brackets, got {shown(given)}")
    host = _checked_host(parts.hostname or "", bracketed=bracketed)
    scheme: Literal["http", "https"] = "http" if parts.scheme == "http" else "https"
    found = HttpUrl(scheme, host, port or PORTS[scheme], target)
    if len(str(found)) > MAX_URL:
        raise ValueError(f"must have at most {MAX_URL:,} characters with its host in ASCII")
    return found


def _checked_host(given: str, *, bracketed: bool) -> str:
    """Raises ValueError for anything but a name or an address in its usual form."""
    if bracketed:
        try:
            address = IPv6Address(given)
        except ValueError:
            address = None
        if address is None or address.scope_id is not None:
            raise ValueError(
                f"must have an IPv6 address without a zone in brackets, got {shown(given)}"
            )
        return str(address)
    if len(given) > MAX_HOST:
        raise ValueError(f"must have a host of at most {MAX_HOST} characters, got {len(given):,}")
    host = given
    if not given.isascii():
        import idna

        try:
            host = idna.encode(given, uts46=True).decode("ascii")
        except (idna.IDNAError, UnicodeError):
            raise ValueError(f"must have a host that IDNA allows, got {shown(given)}") from None
    label = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
    if len(host) > MAX_HOST or not re.fullmatch(rf"{label}(\.{label})*", host):
        raise ValueError(
            "must have a host of letters, digits and hyphens between single dots, without a final dot, "
            f"got {shown(given)}"
        )
    # Resolvers read 2130706433, 0x7f.1 and 0177.0.0.1 as addresses.
    if re.fullmatch(r"[0-9]+|0x[0-9a-f]*", host.rpartition(".")[2]):
        try:
            return str(IPv4Address(host))
        except ValueError:
            raise ValueError(
                f"must have an IPv4 address of four decimal numbers, got {shown(given)}"
            ) from None
    return host


def check_url(given: str, networks: Networks, *, proxied: bool) -> HttpUrl:
    """Check as far as the URL alone tells whether the service may send to a receiver. Raises ValueError.

    http:// is only for `networks`, the operator's exceptions: the address behind a name is checked with each
    connection. With a proxy, which looks names up itself, http:// is never allowed.
    """
    url = parse_url(given)
    if url.scheme == "http" and (proxied or not networks):
        raise ValueError(f"must begin with https://, got {shown(given)}")
    address = url.address
    if address is not None and not is_allowed(address, networks, url.scheme):
        raise ValueError(f"must not have an internal address, got {shown(given)}")
    return url


__all__ = [
    "MAX_URL",
    "Address",
    "HttpUrl",
    "Networks",
    "check_url",
    "is_allowed",
    "is_in",
    "is_public",
    "parse_networks",
    "parse_url",
    "plain",
]
