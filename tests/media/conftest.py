"""A fixture: the sockets that a test opens."""

from tests.sockets import sockets

__all__ = ["sockets"]
