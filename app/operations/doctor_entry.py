"""The doctor: looks at a state from outside, whether the service runs or not, and says what is wrong and what to do."""

from app.operations.doctor import examine
from app.operations.doctor_finding import Finding, Level

__all__ = ["Finding", "Level", "examine"]
