"""Addresses and URLs that the service may contact: hostile spellings of internal addresses are all refused."""

from __future__ import annotations

from ipaddress import ip_address

import pytest
from pydantic import ValidationError

from app.platform.addresses import (
    MAX_URL,
    check_url,
    is_allowed,
    is_public,
    parse_networks,
    parse_url,
)
from app.platform.settings import Settings
from tests.raising import raises

INTERNAL = (
    *("0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255"),
    *("100.100.100.200", "127.0.0.1", "127.255.255.254", "168.63.129.16", "169.254.0.1"),
    *("169.254.169.254", "169.254.170.2", "172.16.0.1", "172.31.255.255", "192.0.0.8"),
    *("192.0.0.192", "192.0.2.1", "192.31.196.1", "192.52.193.1", "192.88.99.1", "192.168.1.1"),
    *("192.175.48.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1"),
    *("224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255"),
    *("::", "::1", "::7f00:1", "::127.0.0.1", "::10.0.0.1", "::8.8.8.8", "::ffff:127.0.0.1"),
    *("::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:168.63.129.16", "::ffff:0:127.0.0.1"),
    *("64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b::a00:1", "64:ff9b:1::7f00:1"),
    *("100::1", "100:0:0:1::1", "2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:2::1"),
    *("2001:10::1", "2001:20::1", "2001:db8::1", "2002:7f00:1::", "2002:a9fe:a9fe::1"),
    *("2002:808:808::1", "2620:4f:8000::1", "3fff::1", "5f00::1", "4000::1", "fc00::1"),
    *("fd00:ec2::254", "fd20:ce::254", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1"),
    *("2607:f8b0::5efe:7f00:1", "2607:f8b0::200:5efe:a00:1"),
)
PUBLIC = (
    *("1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0"),
    *("168.63.129.15", "172.15.255.255", "172.32.0.0", "192.0.1.0", "198.17.255.255"),
    *("223.255.255.255", "2001:4860:4860::8888", "2606:4700::1111", "2a00:1450::1"),
    *("::ffff:8.8.8.8", "64:ff9b::808:808"),
)


@pytest.mark.parametrize("text", INTERNAL)
def test_internal_addresses_are_refused(text: str) -> None:
    address = ip_address(text)
    assert not is_public(address)
    for scheme in ("http", "https"):
        assert not is_allowed(address, (), scheme)
    if "%" not in text:
        host = f"[{text}]" if ":" in text else text
        with raises(ValueError, repr(f"https://{host}/hook")):
            check_url(f"https://{host}/hook", (), proxied=False)
        with raises(ValueError, repr(f"https://{host}/hook")):
            check_url(f"https://{host}/hook", (), proxied=True)


@pytest.mark.parametrize("text", PUBLIC)
def test_public_addresses_are_allowed_by_https_only(text: str) -> None:
    address = ip_address(text)
    assert is_allowed(address, (), "https")
    assert not is_allowed(address, (), "http")
    assert not is_allowed(address, parse_networks("10.0.0.0/8"), "http")


def test_a_network_is_allowed_in_every_spelling_and_metadata_never() -> None:
    networks = parse_networks("10.0.0.0/8, 127.0.0.0/8,fd00::/16,169.254.0.0/16,0.0.0.0/0,::/0")
    for text in (
        "10.1.2.3",
        "::ffff:10.1.2.3",
        "64:ff9b::a01:203",
        "127.0.0.1",
        "::1",
        "fd00:1::1",
    ):
        for scheme in ("http", "https"):
            assert is_allowed(ip_address(text), networks, scheme)
    for text in (
        *("169.254.169.254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1"),
        *("::169.254.169.254", "168.63.129.16", "100.100.100.200", "fd00:ec2::254", "0.0.0.0"),
        *("::", "224.0.0.1", "ff02::1", "255.255.255.255", "169.254.170.2"),
    ):
        for scheme in ("http", "https"):
            assert not is_allowed(ip_address(text), networks, scheme)


HOSTILE = (
    *("https://2130706433/", "https://0x7f000001/", "https://0x7f.1/", "https://0177.0.0.1/"),
    *("https://127.1/", "https://127.0.1/", "https://00.0.0.0/", "https://256.256.256.256/"),
    *("https://1.2.3.4.5/", "https://0x/", "https://example.0x7f/", "https://127.0.0.1./"),
    *("https://example.com./", "https://.example.com/", "https://a..b/", "https:///hook"),
    *("https://", "https:", "https:example.com", "//example.com", "example.com", "", " "),
    *("https://user@example.com/", "https://user:pass@example.com/", "https://@example.com/"),
    *("https://example.com@127.0.0.1/", "https://127.0.0.1\\@example.com/", "https:\\\\a.com"),
    *("https://example.com/#", "https://example.com/#x", "https://example.com#@127.0.0.1/"),
    *("https://exa mple.com/", "https://example.com/a b", "https://example.com/\r\nX: y"),
    *("https://example.com\t/", "https://exam\nple.com/", "\thttps://example.com", "https://a/\0"),
    *("https://example.com:0/", "https://example.com:65536/", "https://example.com:-1/"),
    *("https://example.com:/", "https://example.com:80x/", "https://example.com:8 0/"),
    *("https://[::1%25lo]/", "https://[fe80::1%eth0]/", "https://[::1/", "https://::1/"),
    *("https://[::1]x/", "https://x[::1]/", "https://[v1.a]/", "https://[]/", "https://[1.2.3.4]/"),
    *("https://１２７.0.0.1/", "https://127。0。0。1/", "https://⑯⑨。②⑤④。⑯⑨。②⑤④/"),
    *("https://[::ffff:1.2.3.4.5]/", "https://-a.com/", "https://a-.com/", "https://a%2eb.com/"),
    *("https://exämple..com/", "https://\u202eexample.com/", "https://ex\u2028ample.com/"),
    *("ftp://example.com/", "file:///etc/passwd", "gopher://a/", "javascript:alert(1)", "data:,x"),
    *("https://example.com/ü", "https://example.com/?q=<x>", "https://example.com/^"),
    "https://" + "a" * 64 + ".com/",
    "https://" + "a." * 130 + "com/",
    "https://example.com/" + "a" * MAX_URL,
    "https://" + "ü" * 1000 + ".com/",
)


@pytest.mark.parametrize("url", HOSTILE)
def test_hostile_urls_are_refused(url: str) -> None:
    for networks in ((), parse_networks("10.0.0.0/8")):
        with pytest.raises(ValueError):  # noqa: PT011 - the sentence is judged elsewhere
            check_url(url, networks, proxied=False)


def test_http_is_for_allowed_networks_only() -> None:
    networks = parse_networks("127.0.0.0/8")
    assert check_url("http://127.0.0.1:8080/hook", networks, proxied=False).port == 8080
    assert check_url("http://receiver/hook", networks, proxied=False).host == "receiver"
    for url, given, proxied in (
        ("http://example.com/", "", False),
        ("http://1.1.1.1/", "127.0.0.0/8", False),
        ("http://127.0.0.1/", "127.0.0.0/8", True),
    ):
        with raises(ValueError, repr(url)):
            check_url(url, parse_networks(given), proxied=proxied)


def test_urls_have_one_form() -> None:
    for given, expected in (
        ("HTTPS://Example.COM", "https://example.com/"),
        ("https://example.com:443/a?b=c", "https://example.com/a?b=c"),
        ("https://example.com:8443?x", "https://example.com:8443/?x"),
        ("https://Bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://[2606:4700:0:0::1111]:444/", "https://[2606:4700::1111]:444/"),
        ("https://a_b.example/%41;x=(1)", "https://a_b.example/%41;x=(1)"),
    ):
        assert str(parse_url(given)) == expected
        assert str(parse_url(expected)) == expected


@pytest.mark.parametrize(
    "text",
    ["10.0.0.1/8", "10.0.0.0/33", "x", "10.0.0.0/8;1.1.1.1", "fe80::%eth0/64", "é", "1.1.1.1,a"],
)
def test_networks_that_are_none_are_refused(text: str) -> None:
    with raises(ValueError, repr(text.rpartition(",")[2])):
        parse_networks(text)


def test_too_many_networks_are_refused() -> None:
    with raises(ValueError, 100, 101):
        parse_networks(",".join(f"10.0.{number}.0/24" for number in range(101)))


def test_settings_are_checked_at_start_by_name() -> None:
    given = Settings(webhook_networks="10.1.2.3/32,fd00:1::/64", webhook_proxy="http://proxy:3128")
    assert len(given.networks_of_webhooks) == 2
    assert str(given.proxy_of_webhooks) == "http://proxy:3128/"
    empty = Settings(webhook_networks="", webhook_proxy="")  # as compose.yml passes them
    assert (empty.networks_of_webhooks, empty.proxy_of_webhooks) == ((), None)
    for name, wrong in (
        ("webhook_networks", "10.1.2.3/8"),
        ("webhook_networks", "internal"),
        ("webhook_proxy", "proxy:3128"),
        ("webhook_proxy", "https://proxy:3128"),
        ("webhook_proxy", "socks5://proxy"),
        ("webhook_proxy", "http://user:pass@proxy:3128"),
        ("webhook_proxy", "http://proxy:3128/path"),
        ("webhook_proxy", "http://proxy:3128?a"),
    ):
        with pytest.raises(ValidationError) as caught:
            Settings.model_validate({name: wrong})
        [error] = caught.value.errors()
        assert error["loc"] == (name,)
        assert "pass" not in error["msg"].replace("password", "")
