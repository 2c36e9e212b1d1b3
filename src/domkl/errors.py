"""The error tree.

DomklError
├── ParameterError (ValueError)   a parameter breaks its rule
├── DataError      (ValueError)   samples, tables or files that cannot be used
├── GraphError     (ValueError)   a network that cannot be built, or does not suit the algorithm
├── WireError      (ValueError)   bytes that are no frame, or a frame that must not be heeded
├── MeshError                     a mesh that cannot start or has failed
└── WorkerError                   processes or machines that should do the work and do not

One voice for every message: name, rule, value; then the remedy, where there is one.
"""


class DomklError(Exception):
    """Base of every error that domkl raises on purpose."""


class ParameterError(DomklError, ValueError):
    """A parameter breaks its rule."""


class DataError(DomklError, ValueError):
    """Samples, tables or files that cannot be used."""


class GraphError(DomklError, ValueError):
    """A network that cannot be built, or that does not suit the algorithm."""


class WireError(DomklError, ValueError):
    """Bytes that are no frame, or a frame that must not be heeded."""


class MeshError(DomklError):
    """A mesh that cannot start or has failed."""


class WorkerError(DomklError):
    """Processes or machines that should do the work and do not."""
