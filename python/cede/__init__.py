"""Cede from Python: simulate, write congestion controllers, read queueing delays from captures, carry data that gets out of the way.

    import cede

    result = cede.run("latecomer", set={"flow.late.controller": "fledbat"}, seed=3)
    print(result.flows["late"]["share"])

    found = cede.meter("office.pcap")
    print(found.hosts[0]["address"], found.hosts[0]["queue"]["time_mean_ms"])

    with cede.connect("backup.example:7000", controller="ledbat++") as stream:
        stream.write(archive)

Everything is computed by the same code as by the command `cede`, and a seed gives the same bits. Series are `array.array`, which
numpy, pandas and polars take without a copy: `numpy.asarray(result.series["t_s"])`.
"""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Union

from . import _cede
from ._cede import Feedback, Packet, Path, ScenarioError, Sent, Timeout, __version__
from .controller import Controller
from .sockets import Socket, Stream, connect, pairs

__all__ = [
    "Controller",
    "Feedback",
    "Metered",
    "Packet",
    "Path",
    "Result",
    "ScenarioError",
    "Sent",
    "Socket",
    "Stream",
    "Timeout",
    "__version__",
    "check",
    "connect",
    "controllers",
    "meter",
    "run",
]

#: What makes a controller of a path: a subclass of `Controller`, or any function that gives such an object.
ControllerClass = Callable[[Path], Any]
#: Where a capture is: a path, or what can be read from (`gzip.open(...)`).
Capture = Union[str, "os.PathLike[str]", BinaryIO]


@dataclass(frozen=True)
class Result:
    """What came of a scenario or a swarm."""

    #: Everything but series; of a scenario the names are those of `cede run --json`'s metrics, of a swarm those of its `summary.json`.
    summary: dict[str, Any]
    #: One value for each sampling interval: `t_s`, and by name `links` (`queue_mean_ms`, `queue_max_ms`) and `flows` (`rate_mbps`,
    #: `cwnd_bytes`, `ssthresh_bytes`, `srtt_ms`, `believed_queue_ms`, `in_flight_bytes`, `retransmissions`). Not a number where there is
    #: none. Empty for a swarm.
    series: dict[str, Any]

    @property
    def flows(self) -> dict[str, dict[str, Any]]:
        """The flows of a scenario by name."""
        return {flow["name"]: flow for flow in self.summary.get("flows", [])}

    @property
    def links(self) -> dict[str, dict[str, Any]]:
        """The metered links of a scenario by name; the first is the bottleneck."""
        return {link["name"]: link for link in self.summary.get("links", [])}


def run(
    scenario: str | os.PathLike[str],
    *,
    set: Mapping[str, Any] | None = None,
    seed: int | None = None,
    controllers: Mapping[str, ControllerClass] | None = None,
) -> Result:
    """Runs a scenario or a swarm in virtual time.

    `scenario` is a path, the name of a built-in one (`cede list scenarios`), or a text in TOML (what has more than one line).
    `set` lays values over it: `{"link.loss": 0.01, "flow.*.stop": "5 s"}`. `controllers` gives flows a controller that is written in
    Python, whatever the scenario says: `{"late": MyController}`.

    Raises `ScenarioError` with every problem and its place, `FileNotFoundError`, and what a controller raises.
    """
    source, text = _text(scenario)
    overrides = [f"{key}={_toml(value)}" for key, value in pairs(set)]
    if seed is not None:
        overrides.append(f"seed={seed}")
    summary, series = _cede.run(source, text, overrides, list((controllers or {}).items()))
    return Result(json.loads(summary), _arrays(series))


def check(
    controller: str | ControllerClass,
    *,
    only: str | Iterable[str] = (),
    over: str = "utp",
    set: Mapping[str, Any] | None = None,
    vary: int | None = None,
    jobs: int | None = None,
) -> list[dict[str, Any]]:
    """Runs the battery that any background controller should survive: a dictionary for each case, with `passed` and its `findings`.

    `controller` is a name (`"ledbat"`) or a class of your own, which has no parameters to set. `only` picks cases and families (`["yields", "path/longer"]`), `over` the
    transport (`"utp"` or `"tcp"`), `set` parameters of the controller, and `vary` draws other links from a seed. Controllers in Python are
    checked on one core.
    """
    settings = [f"{key}={_toml(value)}" for key, value in pairs(set)]
    only = [only] if isinstance(only, str) else list(only)
    return json.loads(_cede.check(controller, only, over, settings, vary, jobs))


def controllers() -> dict[str, dict[str, Any]]:
    """Every controller of Cede's own by name: `summary`, `formula`, `source`, `parameters`."""
    return {entry["name"]: entry for entry in json.loads(_cede.controllers())}


@dataclass(frozen=True)
class Metered:
    """What captures say; the names are those of `cede meter --json`."""

    #: Hosts, the worst first.
    hosts: list[dict[str, Any]]
    #: Directions of flows, where they were asked for.
    flows: list[dict[str, Any]] | None
    #: Samples as columns, where they were asked for: `flow` (its place in `flows`), `echoed` (0 or 1), `time_s` (since 1970), `queue_ms`.
    samples: dict[str, array[Any]] | None
    #: What became of the packets.
    counters: dict[str, Any]
    #: Hosts that had fewer samples than are asked for.
    hosts_with_too_few_samples: int
    #: What is wrong with the captures; what could be read counts all the same.
    damage: list[str]


def meter(
    *captures: Capture,
    estimator: str = "direct",
    base_s: float | None = None,
    protocol: str | None = None,
    filter: str | None = None,
    min_samples: int = 20,
    memory_bytes: int = 512 << 20,
    flows: bool = False,
    samples: bool = False,
) -> Metered:
    """Says how long packets queued at the other end of each flow, from captures (pcap or pcapng) in the order of time, as one run.

    A capture is a path, or an object that can be read from: `cede.meter(gzip.open("a.pcap.gz"))`. The options are those of `cede meter`;
    `docs/meter.md` tells what the figures mean and what may be wrong with them (`flags`).

    Raises `OSError` where nothing can be read, `ValueError` where what is there is no capture, and what `read` raises.
    """
    if not captures:
        raise TypeError("meter() takes at least one capture")
    for capture in captures:
        if not (isinstance(capture, (str, os.PathLike)) or hasattr(capture, "read")):
            raise TypeError(f"a capture is a path or has a method read, and {capture!r} is neither")
    wish = {
        "estimator": estimator,
        "base_s": base_s,
        "protocol": protocol,
        "filter": filter,
        "min_samples": min_samples,
        "memory_bytes": memory_bytes,
        "flows": flows or samples,
        "samples": samples,
    }
    found, columns = _cede.meter(list(captures), wish)
    document = json.loads(found)
    forms = {"flow": "I", "echoed": "B"}
    arrays = {name: _array(octets, forms.get(name, "d")) for name, octets in columns.items()}
    return Metered(samples=arrays if samples else None, **document)


def _text(scenario: str | os.PathLike[str]) -> tuple[str, str]:
    """Where a scenario comes from, and its text."""
    if isinstance(scenario, str) and "\n" in scenario:
        return "<text>", scenario
    path = os.fsdecode(scenario)
    if not os.path.exists(path):
        built_in = _cede.built_in_text(path)
        if built_in is not None:
            return path, built_in
    with open(path, encoding="utf-8") as file:
        return path, file.read()


def _toml(value: Any) -> str:
    """A value as it stands in a scenario."""
    if hasattr(value, "tolist"):
        # numpy's numbers and arrays call themselves by names of their own.
        value = value.tolist()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _arrays(series: Any) -> Any:
    if isinstance(series, dict):
        return {name: _arrays(part) for name, part in series.items()}
    return _array(series, "d")


def _array(octets: bytes, form: str) -> array[Any]:
    values = array(form)
    values.frombytes(octets)
    return values
