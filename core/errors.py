"""The exceptions that core raises; each message names the input or parameter, the rule that it breaks and its value."""

MAX_MESSAGE = 1000
"""Most characters of an error's message."""
MAX_VALUE = 100
"""Most characters of a caller's value in a message."""


def shorten(text: str, most: int = MAX_MESSAGE) -> str:
    """Return a text of at most `most` characters: "…" replaces the middle of a longer one."""
    if len(text) <= most:
        return text
    end = most // 5
    return f"{text[: most - end - 1]}…{text[len(text) - end :]}"


class CoreError(ValueError):
    """Base class of the exceptions of core: the caller's input breaks a rule."""

    code = "invalid_input"

    def __init__(self, message: str) -> None:
        super().__init__(shorten(message))


class InvalidData(CoreError):
    """X, y or weights are invalid: wrong width, one class only, a negative weight, text where numbers belong."""

    code = "invalid_data"


class InvalidParameter(CoreError):
    """A parameter has a wrong type, is out of bounds, or contradicts another one."""

    code = "invalid_parameter"


class ArtifactError(CoreError):
    """Bytes are not an artifact that this version can read, or a ranker cannot be saved."""

    code = "invalid_artifact"


class InvalidModelFile(CoreError):
    """A model file of another library is damaged, or holds a model that cannot be scored exactly."""

    code = "invalid_model_file"


class NotExportable(CoreError):
    """A ranker cannot be written in a format: the format cannot hold its score, or it is too large."""

    code = "not_exportable"


class ShardsLost(RuntimeError):
    """Shards of a fit, or the processes that hold them, were lost or changed: no input is at fault."""
