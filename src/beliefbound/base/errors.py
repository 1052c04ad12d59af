"""Exceptions that name the place, the value and the fix.

Every error a person can cause by bad input derives from `BeliefboundError`, so the command line can print its
message without a traceback, and from `ValueError`, so library users can catch what they already catch.
"""


class BeliefboundError(ValueError):
    """Base of every error caused by input rather than by a defect.

    >>> issubclass(ModelError, BeliefboundError) and issubclass(BeliefboundError, ValueError)
    True
    """


class ModelError(BeliefboundError):
    """Transitions, rewards, action sets or start distributions that do not describe an MDP."""


class PolicyError(BeliefboundError):
    """A policy that does not fit the model, or is asked for something it does not have."""


class BeliefError(BeliefboundError):
    """Weights, concentrations or reward beliefs that do not describe a belief."""


class ObservationError(BeliefboundError):
    """A transition that cannot have happened under the belief, or whose ids or reward are out of range."""


class ParameterError(BeliefboundError):
    """A knob outside its range: discount, horizon, epsilon, number of samples, …"""


class FileError(BeliefboundError):
    """A file or folder that is missing, malformed or already holds something else."""


class ExecutorError(BeliefboundError):
    """A cluster that cannot be reached, or that lost a block for good."""


class MissingExtraError(BeliefboundError, ImportError):
    """A package that only some of the library needs, and that is not installed."""


class ContradictionError(BeliefboundError):
    """A lower bound above an upper one: they are of different problems, or a sampled one is among those that fail."""


class PluginError(BeliefboundError):
    """Somebody's own agent, environment or prior that fails: one line of it; `details` has the traceback."""

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(message)
        self.details = details
