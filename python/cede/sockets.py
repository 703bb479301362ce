"""uTP sockets: streams that yield to everybody else's traffic, as files."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from ._cede import Socket as _Port
from ._cede import Stream as _Flow

#: A write hands over so much at a time: it can be interrupted in between, and copies no more.
_CHUNK_BYTES = 1 << 18


class Stream(io.RawIOBase):
    """One end of a uTP stream: a binary file that is read from and written to, by two threads at a time if need be.

    Each call waits `timeout_s` seconds at most, for ever where that is None, and raises `TimeoutError` then; what fails raises the
    `OSError` that a socket's failure is in Python (`ConnectionRefusedError`, `ConnectionResetError`, `BrokenPipeError` ...). While one
    waits, other threads go on, and Ctrl-C ends it.

    `io.BufferedReader(stream)` reads lines, and `io.BufferedWriter(stream)` gathers what is written in small pieces.
    """

    def __init__(self, stream: _Flow, timeout_s: float | None = None) -> None:
        super().__init__()
        self._stream = stream
        #: How long a call waits at most, in seconds; None for ever.
        self.timeout_s = timeout_s

    def __del__(self) -> None:
        # A file's would close, and wait. What was written arrives in the background, as long as the process lives.
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is not None:
            self.abort()
        self.close()

    def __repr__(self) -> str:
        return f"<cede.Stream to {self.peer[0]} port {self.peer[1]}{', closed' if self.closed else ''}>"

    @property
    def peer(self) -> tuple[str, int]:
        """The other end's address and port."""
        return self._stream.peer

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Reads what is there, or what comes first, into the buffer: how many octets. 0 means that the other end has ended its direction."""
        self._check()
        with memoryview(buffer).cast("B") as room:
            octets = self._stream.read(len(room), self.timeout_s)
            room[: len(octets)] = octets
        return len(octets)

    def write(self, octets: Any) -> int:
        """Hands over all of it, which waits while the peer takes no more: how many octets.

        What raises leaves open how much of it was handed over.
        """
        self._check()
        with memoryview(octets).cast("B") as all_octets:
            done = 0
            while done < len(all_octets):
                piece = bytes(all_octets[done : done + _CHUNK_BYTES])
                done += self._stream.write(piece, self.timeout_s)
            return done

    def finish(self) -> None:
        """Ends our direction, and waits until the peer has all that was written. What the peer says can be read on."""
        self._check()
        self._stream.finish(self.timeout_s)

    def close(self) -> None:
        """Finishes, and gives the stream up; raises where not all has arrived, or the other end has failed."""
        if not self.closed:
            super().close()
            self._stream.finish(self.timeout_s)

    def abort(self) -> None:
        """Ends it at once, in both directions. It can be called from another thread, and waits for nothing."""
        self._stream.abort()
        super().close()

    def status(self) -> dict[str, Any]:
        """Where it stands: the window, round trips and the queueing delay in seconds (None where they are not known), what was acknowledged,
        received and repeated."""
        return self._stream.status()

    def _check(self) -> None:
        if self.closed:
            raise ValueError("the stream is closed")


class Socket:
    """A UDP port with any number of streams, which others open (`accept`) or this end does (`connect`).

    `address` is `"HOST:PORT"`, 0 for any port. Streams have the controller `controller` with its parameters `set`
    (`{"target": "25 ms"}`; `cede.controllers()` lists them) unless they are told otherwise; LEDBAT where none is given.
    """

    def __init__(
        self,
        address: str | tuple[str, int] = "0.0.0.0:0",
        *,
        controller: str | None = None,
        set: Mapping[str, Any] | None = None,
    ) -> None:
        self._socket: _Port | None = _Port(_text_of(address), _choice(controller, set))

    def __enter__(self) -> Socket:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.close()

    @property
    def address(self) -> tuple[str, int]:
        """Where it is bound: address and port."""
        return self._bound().address

    def accept(self, *, timeout_s: float | None = None) -> Stream:
        """Waits for a stream that somebody else has opened; `TimeoutError` after `timeout_s` seconds."""
        return Stream(self._bound().accept(timeout_s))

    def connect(
        self,
        peer: str | tuple[str, int],
        *,
        controller: str | None = None,
        set: Mapping[str, Any] | None = None,
        timeout_s: float | None = None,
    ) -> Stream:
        """Opens a stream to `"HOST:PORT"`, as `cede.connect` does, from this port."""
        return Stream(self._bound().connect(_text_of(peer), _choice(controller, set), timeout_s))

    def close(self) -> None:
        """Gives the port up once its streams are over; nobody can open another."""
        self._socket = None

    def _bound(self) -> _Port:
        if self._socket is None:
            raise ValueError("the socket is closed")
        return self._socket


def connect(
    peer: str | tuple[str, int],
    *,
    controller: str | None = None,
    set: Mapping[str, Any] | None = None,
    timeout_s: float | None = None,
) -> Stream:
    """Opens a uTP stream to `"HOST:PORT"`, or to a pair such as `Socket.address`, from a port of its own.

    `controller` and `set` are those of `cede.Socket`. Without `timeout_s` it takes as long as the protocol does, some 20 s where nobody
    answers. Whoever listens may be any program that speaks uTP.
    """
    return Stream(_Flow(_text_of(peer), _choice(controller, set), timeout_s))


def _choice(controller: str | None, set: Mapping[str, Any] | None) -> tuple[str, list[tuple[str, str]]] | None:
    if controller is None and not set:
        return None
    return controller or "ledbat", [(name, str(value)) for name, value in pairs(set)]


def pairs(set: Mapping[str, Any] | None) -> list[tuple[str, Any]]:
    """What `set` lays over something, by name."""
    if set is None:
        return []
    if not isinstance(set, Mapping):
        raise TypeError(f'set is a mapping from names to values, such as {{"target": "25 ms"}}, and not {set!r}')
    return list(set.items())


def _text_of(address: str | tuple[str, int]) -> str:
    """An address as text: a pair is what `Socket.address` and `Stream.peer` give."""
    if isinstance(address, str):
        return address
    if isinstance(address, tuple) and len(address) >= 2:
        host, port = address[:2]
        return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"
    raise TypeError(f'an address is "HOST:PORT" or (HOST, PORT), and not {address!r}')
