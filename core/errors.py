"""The errors that core raises. Each message has the name of the thing, the rule and the value."""


class CoreError(ValueError):
    """Base of the errors of core: the caller's input breaks a rule."""

    code = "invalid_input"


class InvalidData(CoreError):
    """X, y or the weights break a rule: wrong width, one class only, a negative weight, text where numbers belong."""

    code = "invalid_data"


class InvalidParameter(CoreError):
    """A parameter is outside its type or bounds, or contradicts another one."""

    code = "invalid_parameter"


class ArtifactError(CoreError):
    """Bytes are not an artifact that this version can read, or a ranker cannot be saved."""

    code = "invalid_artifact"


class ShardsLost(RuntimeError):
    """Shards of a fit, or the processes that hold them, are lost or were changed: nobody's input is at fault."""
