"""The rules for the host of a fetched URL and for each address of it. Pure: no name is resolved here.

Networks are those of the registries of special-purpose addresses of IANA
(https://www.iana.org/assignments/iana-ipv4-special-registry, https://www.iana.org/assignments/iana-ipv6-special-registry,
2026-11) and the metadata services of clouds: AWS, Google Cloud, Azure (168.63.129.16), Alibaba (100.100.100.200).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TypeAlias

__all__ = ["Address", "broken_rule", "literal_of"]

Address: TypeAlias = IPv4Address | IPv6Address

_RULES: Mapping[str, tuple[str, ...]] = {
    "metadata": ("169.254.169.254", "fd00:ec2::254", "fd20:ce::254", "100.100.100.200", "168.63.129.16", "192.0.0.192"),
    "unspecified": ("0.0.0.0/8", "::"),
    "loopback": ("127.0.0.0/8", "::1"),
    "link-local": ("169.254.0.0/16", "fe80::/10"),
    "private": ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10"),
    "shared": ("100.64.0.0/10",),
    "multicast": ("224.0.0.0/4", "ff00::/8"),
}
_NETWORKS = [(rule, ip_network(text)) for rule, texts in _RULES.items() for text in texts]
_NAT64 = ip_network("64:ff9b::/96")
_COMPATIBLE = ip_network("::/96")  # the deprecated form of an IPv4 address
_NUMBER = re.compile(r"\d+|0x[0-9a-f]*", re.IGNORECASE)


def broken_rule(address: Address) -> str | None:
    """Return the rule that forbids an address; ``None`` for a public one.

    An IPv6 address that carries one of IPv4 (mapped, NAT64, 6to4, Teredo) is judged by each carried address.

    >>> from ipaddress import ip_address
    >>> broken_rule(ip_address("::ffff:10.0.0.1")), broken_rule(ip_address("1.1.1.1"))
    ('private', None)
    """
    for rule, network in _NETWORKS:
        if address in network:
            return rule
    if isinstance(address, IPv6Address) and (carried := _carried(address)):
        return next(filter(None, map(broken_rule, carried)), None)
    return None if address.is_global and not address.is_reserved else "reserved"


def _carried(address: IPv6Address) -> tuple[IPv4Address, ...]:
    if address.ipv4_mapped:
        return (address.ipv4_mapped,)
    if address.sixtofour:
        return (address.sixtofour,)
    if address in _NAT64 or address in _COMPATIBLE:
        return (IPv4Address(int(address) & 0xFFFFFFFF),)
    return address.teredo or ()


def literal_of(host: str) -> Address | None:
    """Return the address that a host is; ``None`` for a name.

    Raises ``ValueError`` for a number that is no plain dotted address: decimal, octal, hexadecimal, short or zoned forms.

    >>> literal_of("192.0.2.1"), literal_of("example.com")
    (IPv4Address('192.0.2.1'), None)
    >>> literal_of("0x7f.1")
    Traceback (most recent call last):
    ValueError: '0x7f.1' is a number that is no plain address
    """
    if ":" in host and "%" not in host:
        return ip_address(host)
    last = host.rstrip(".").rpartition(".")[2]
    if "%" not in host and not _NUMBER.fullmatch(last):
        return None
    try:
        return IPv4Address(host)
    except ValueError:
        raise ValueError(f"{host!r} is a number that is no plain address") from None
