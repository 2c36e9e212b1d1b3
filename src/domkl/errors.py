"""The error tree.

DomklError
├── ParameterError (ValueError)   a parameter breaks its rule
├── DataError      (ValueError)   samples, tables or files that cannot be used
├── GraphError     (ValueError)   a network that cannot be built, or does not suit the algorithm
├── WireError      (ValueError)   bytes that are not a frame, or a frame that must be ignored
├── VersionError   (ImportError)  a library of a version that domkl was not tested with
├── MeshError                     a mesh that cannot start or has failed
└── WorkerError                   worker processes or machines that have failed

Every message has the same form: the name of the parameter, its rule, the value it got; then the
remedy, if there is one.
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
    """Bytes that are not a frame, or a frame that must be ignored."""


class VersionError(DomklError, ImportError):
    """A library of a version that domkl was not tested with."""


class MeshError(DomklError):
    """A mesh that cannot start or has failed."""


class WorkerError(DomklError):
    """Worker processes or machines that have failed."""
