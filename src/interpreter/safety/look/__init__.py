"""What a block would do, from its text; in doubt, it may."""

from interpreter.safety.look.effects import Effect, Effects, Kind, Place, Step
from interpreter.safety.look.look import look
from interpreter.safety.look.reversible import Reversibility, reversibility

__all__ = ["Effect", "Effects", "Kind", "Place", "Reversibility", "Step", "look", "reversibility"]
