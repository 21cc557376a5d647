"""Skills: what has worked once, kept as functions and instructions for another time."""

from interpreter.computer_api.skills.new_skill import NewSkill
from interpreter.computer_api.skills.skills import Skills

__all__ = ["NewSkill", "Skills"]
