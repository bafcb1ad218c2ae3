"""No test here is timed: hypothesis's deadline would fail examples on a busy machine."""

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
