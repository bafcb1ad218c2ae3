"""The ways in which core refuses its input. Each message names the thing, the rule and the value."""


class CoreError(ValueError):
    """Base of every error that core raises on purpose: the caller's input was at fault."""

    code = "invalid_input"


class InvalidData(CoreError):
    """X, y or the weights break a rule: wrong width, one class only, a negative weight, text where numbers belong."""

    code = "invalid_data"


class InvalidParameter(CoreError):
    """A parameter is outside its type or bounds, or contradicts another one."""

    code = "invalid_parameter"


class ArtifactError(CoreError):
    """Bytes that are not an artifact this version can read, or a ranker that cannot be saved."""

    code = "invalid_artifact"
