"""What a block would do, from its text; in doubt, it may."""

from interpreter.policy.analysis.effects import (
    Effect,
    Effects,
    Kind,
    Place,
    Reversibility,
    Step,
    reversibility,
)
from interpreter.policy.analysis.look import look

__all__ = ["Effect", "Effects", "Kind", "Place", "Reversibility", "Step", "look", "reversibility"]
