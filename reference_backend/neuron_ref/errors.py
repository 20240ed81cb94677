"""The exceptions of this package; each message says what was got, what was wanted and what to do."""


class NeuronRefError(RuntimeError):
    """Base of everything that this package raises about itself, as opposed to about a tensor."""


class BuildError(NeuronRefError):
    """The C++ part could not be built."""


class StaleBuildError(NeuronRefError):
    """The C++ part is missing, or does not fit the importable torch and the present sources."""


class ActivationError(NeuronRefError):
    """The device could not be registered in this process."""
