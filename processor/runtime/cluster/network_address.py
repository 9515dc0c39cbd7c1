"""Addresses on a network, as people write them."""

from __future__ import annotations

from processor.channels.addresses import TcpAddress, parse_address
from processor.errors import SettingsError


def network_address(text: str, named: str) -> TcpAddress:
    """``named``: the setting or option that it is the value of. Raises SettingsError for what is none."""
    try:
        address = parse_address(text)
    except ValueError as error:
        raise SettingsError(f"{named}: {error}.", remedy="Write tcp:host:port.") from None
    if not isinstance(address, TcpAddress):
        raise SettingsError(f"{named}: {text} is no address on a network.", remedy="Write tcp:host:port.")
    return address
