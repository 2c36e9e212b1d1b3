"""The table of transports: what mesh files, the command line and nodes know of each.

To add a transport, write its module, with a `Transport` that has a classmethod ``at(endpoint)``,
and add an entry here. Importing this module imports no transport, so that `domkl --help` can read
the names without loading their libraries.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from domkl.errors import ParameterError

if TYPE_CHECKING:
    from domkl.mesh.transports.base import Address, Endpoint, Transport


@dataclass(frozen=True)
class TransportEntry:
    """A transport under the name that `mesh.toml` uses."""

    name: str
    home: str  # module:Name of its class
    package: str  # that its module imports
    extra: str  # of domkl, with which the package is installed
    router: str | None = None  # module:function that runs its router, if it can use one

    def make(self, endpoint: "Endpoint") -> "Transport":
        """The transport of a node."""
        self.check_router(endpoint.router)
        ca = endpoint.certificates / "ca.pem"
        if not ca.exists():
            raise ParameterError(f"{ca} is missing; copy the learner's whole folder")
        made: Transport = imported(self.home, self.extra).at(endpoint)
        return made

    def check_router(self, router: "Address | None") -> None:
        """Refuse a router if the transport cannot use one."""
        if router is not None and self.router is None:
            able = " or ".join(each.name for each in TRANSPORTS.values() if each.router)
            raise ParameterError(
                f"router is for transport {able}, got {str(router)!r} with {self.name}"
            )

    @property
    def run_router(self) -> Any:
        """The function ``(listen, certificates, members, is_over)`` that runs its router."""
        if self.router is None:
            raise ParameterError(f"transport must be one that uses a router, got {self.name}")
        return imported(self.router, self.extra)


def imported(home: str, extra: str) -> Any:
    """Import ``module:Name``; if a package is missing, name the extra that installs it."""
    module, _, attribute = home.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        raise missing_extra(error, extra) from None


_ENTRIES = (
    TransportEntry("tls", "domkl.mesh.transports.tls:TlsTransport", "cryptography", "mesh"),
    TransportEntry(
        "zenoh", "domkl.mesh.transports.zenoh:ZenohTransport", "zenoh", "zenoh",
        router="domkl.mesh.transports.zenoh:run_router",
    ),
)  # fmt: skip
TRANSPORTS: dict[str, TransportEntry] = {entry.name: entry for entry in _ENTRIES}


def make(name: str, endpoint: "Endpoint") -> "Transport":
    """The transport of a node, by the name in the mesh file."""
    return find(name).make(endpoint)


def find(name: str) -> TransportEntry:
    """Look a transport up by its name."""
    if name not in TRANSPORTS:
        raise ParameterError(f"transport must be one of {', '.join(TRANSPORTS)}, got {name!r}")
    return TRANSPORTS[name]


def missing_extra(error: ModuleNotFoundError, extra: str = "mesh") -> ParameterError:
    """One line that says which package is missing and how to install it."""
    package = (error.name or "").partition(".")[0]
    if package == "domkl":
        raise error
    return ParameterError(f"{package} is not installed; pip install 'domkl[{extra}]'")
