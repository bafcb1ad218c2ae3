"""The doctor: looks at a state from outside, whether the service runs or not, and says what is wrong and what to do."""

from app.services.doctor.examination import examine
from app.services.doctor.finding import Finding, Level

__all__ = ["Finding", "Level", "examine"]
