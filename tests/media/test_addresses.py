"""Which addresses and hosts may be fetched from."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.media.addresses import broken_rule, literal_of

FORBIDDEN = {
    "loopback": "127.0.0.0/8", "link-local": "169.254.0.0/16", "private": "10.0.0.0/8", "shared": "100.64.0.0/10",
    "multicast": "224.0.0.0/4", "unspecified": "0.0.0.0/8", "reserved": "240.0.0.0/4",
}  # fmt: skip
SIX = {
    "loopback": "::1/128",
    "link-local": "fe80::/10",
    "private": "fc00::/7",
    "multicast": "ff00::/8",
    "unspecified": "::/128",
}
METADATA = ["169.254.169.254", "fd00:ec2::254", "fd20:ce::254", "100.100.100.200", "168.63.129.16", "192.0.0.192"]


def carriers(address: IPv4Address) -> list[IPv6Address]:
    """The forms of IPv6 that carry an address of IPv4: mapped, compatible, NAT64, 6to4, Teredo."""
    number = int(address)
    return [
        IPv6Address(0xFFFF << 32 | number),
        IPv6Address((0x64FF9B << 96) | number),
        IPv6Address(0x2002 << 112 | number << 80 | 1),
    ]


@pytest.mark.parametrize("rule", FORBIDDEN)
@given(data=st.data())
def test_forbidden_address_is_refused_in_every_form(rule: str, data: st.DataObject) -> None:
    address = data.draw(st.ip_addresses(network=FORBIDDEN[rule]))
    assert isinstance(address, IPv4Address)
    expected = {rule, "metadata"} if str(address) in METADATA else {rule}
    assert {broken_rule(address)} <= expected
    for form in carriers(address):
        assert broken_rule(form) is not None, form


@pytest.mark.parametrize("rule", SIX)
@given(data=st.data())
def test_forbidden_address_of_ipv6_is_refused(rule: str, data: st.DataObject) -> None:
    address = data.draw(st.ip_addresses(network=SIX[rule]))
    assert broken_rule(address) in (rule, "metadata")


@pytest.mark.parametrize("address", METADATA)
def test_metadata_services_are_refused_by_name(address: str) -> None:
    assert broken_rule(ip_address(address)) == "metadata"


@given(st.ip_addresses(v=4))
def test_no_address_passes_that_the_standard_library_calls_special(address: IPv4Address) -> None:
    special = not address.is_global or address.is_multicast or address.is_reserved
    if special:
        assert broken_rule(address) is not None
    elif str(address) not in METADATA:
        assert broken_rule(address) is None
        assert [broken_rule(form) for form in carriers(address)] == [None] * 3


@given(st.ip_addresses(v=6))
def test_only_global_unicast_of_ipv6_passes(address: IPv6Address) -> None:
    if broken_rule(address) is None:
        assert (
            address in ip_network("2000::/3")
            or address in ip_network("64:ff9b::/96")
            or int(address) >> 32 in (0, 0xFFFF)
        )


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "93.184.215.14", "2606:4700::1111", "64:ff9b::101:101", "::ffff:1.1.1.1"]
)
def test_public_address_passes(address: str) -> None:
    assert broken_rule(ip_address(address)) is None


@given(st.ip_addresses(v=4))
def test_other_spellings_of_an_address_are_refused(address: IPv4Address) -> None:
    number, (a, b, c, d) = int(address), address.packed
    spellings = [
        str(number),
        hex(number),
        f"{a}.{b * 65536 + c * 256 + d}",
        f"{a}.{b}.{c * 256 + d}",
        f"{hex(a)}.{b}.{c}.{d}",
    ]
    spellings += [f"0{a:o}.{b}.{c}.{d}", f"{a}.{b}.{c}.{d}."]
    for spelling in spellings:
        with pytest.raises(ValueError, match="plain address"):
            literal_of(spelling)
    assert literal_of(str(address)) == address


@pytest.mark.parametrize("host", ["fe80::1%eth0", "1.2.3.4%25x", "256.1.1.1", "1.2.3.4.5"])
def test_malformed_address_is_refused(host: str) -> None:
    with pytest.raises(ValueError, match="plain address"):
        literal_of(host)


@pytest.mark.parametrize("host", ["example.com", "1.example", "0x7f.example", "localhost", "xn--bcher-kva.example"])
def test_name_is_no_address(host: str) -> None:
    assert literal_of(host) is None
