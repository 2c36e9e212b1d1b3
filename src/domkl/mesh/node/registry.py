"""The tables of sources, from which a node takes samples, and of outlets, to which it publishes.

To add one, write its module, with a function that makes it from its options, and add an entry here:
the command line makes the flags from the dataclass of options. Importing this module imports none
of them, so that `domkl node --help` does not load their libraries.

A source is called with the node before it starts, and returns a function that takes samples until
their end. An outlet is called with the node and returns a `publish.Outlet`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from domkl.mesh.transports.registry import imported
from domkl.options import MISSING, flag

if TYPE_CHECKING:
    from domkl.mesh.node.node import Node
    from domkl.mesh.node.publish import Outlet

    Source = Callable[[Node], Callable[[], Awaitable[None]]]
    MakeOutlet = Callable[[Node], Outlet]


@dataclass(frozen=True)
class LineOptions:
    """Options of standard input as a source."""

    stdin: bool = flag(False, "JSON lines from standard input, each as the body of POST /learn")


@dataclass(frozen=True)
class Table:
    """Options of a CSV file as a source."""

    csv: Path | None = flag(None, "rows of a CSV file with a header", "FILE")
    rate: float = flag(0.0, "rows per second; 0 for as fast as they are learned", "R")
    rows: str | None = flag(None, "rows of --csv, as a Python slice: 0::4 is every fourth", "A:B:C")
    missing: str = flag("error", "what to do with rows that have empty cells", choices=MISSING)
    time: str | None = flag(None, "column of --csv with the time, or year,month,day,hour", "COLUMN")
    nodes: str | None = flag(None, "column of --csv with the learner of a row", "COLUMN")


@dataclass(frozen=True)
class Subscription:
    """Options of an MQTT topic as a source."""

    topic: str | None = flag(None, "topic of --mqtt with samples as JSON", "T")
    mqtt: str = ""


@dataclass(frozen=True)
class Publication:
    """Options of an MQTT topic, or standard output, as an outlet."""

    publish: str | None = flag(None, "topic of --mqtt; or - for lines on standard output", "T")
    discovery: str = flag(
        "homeassistant",
        "where Home Assistant looks for sensors, for --publish; '' for none",
        "PREFIX",
    )
    mqtt: str = ""


@dataclass(frozen=True)
class Hook:
    """Options of a webhook as an outlet."""

    webhook: str | None = flag(
        None,
        "POST to http://host/path, or https://; @FILE for a file with the URL and its"
        " user:password@, or DOMKL_WEBHOOK in the environment",
        "URL",
    )


@dataclass(frozen=True)
class LinkEntry:
    """A source or an outlet, under the option that selects it."""

    name: str  # of the option
    options: type  # dataclass
    home: str  # module:function that makes it from the options
    ends: bool = False  # whether a source has an end
    extra: str = "mesh"  # of domkl, with which the packages that it imports are installed

    def make(self, options: Any) -> Any:
        """The source or the outlet; ParameterError says which package is missing."""
        return imported(self.home, self.extra)(options)


SOURCES = (
    LinkEntry("stdin", LineOptions, "domkl.mesh.node.sources:lines_of", ends=True),
    LinkEntry("csv", Table, "domkl.mesh.node.sources:rows_of", ends=True),
    LinkEntry("topic", Subscription, "domkl.mesh.node.mqtt:samples_of", extra="mqtt"),
)
OUTLETS = (
    LinkEntry("publish", Publication, "domkl.mesh.node.publish:published", extra="mqtt"),
    LinkEntry("webhook", Hook, "domkl.mesh.node.publish:posted"),
)
