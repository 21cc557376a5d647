"""The session kernel: one pipeline, one lane, one event log and typed questions, for every caller."""

from interpreter.questions import (
    ANSWER,
    APPROVE,
    EDIT,
    KEEP,
    REFUSE,
    Answer,
    Question,
    Questions,
    Step,
)
from interpreter.session.actions import ACTION, Action, ActionContext, Block, Do, SetPermissions, ToolCall, new_id
from interpreter.session.actor import Actor, Mode, Permissions
from interpreter.session.events import ActionFields, Event, EventLog, Ids, LogEntry, PlanStep, Publisher, Sink
from interpreter.session.kernel import Checkpoints, Performance, Session, Started

__all__ = [
    "ACTION",
    "ANSWER",
    "APPROVE",
    "EDIT",
    "KEEP",
    "REFUSE",
    "Action",
    "ActionContext",
    "ActionFields",
    "Actor",
    "Answer",
    "Block",
    "Checkpoints",
    "Do",
    "Event",
    "EventLog",
    "Ids",
    "LogEntry",
    "Mode",
    "Performance",
    "Permissions",
    "PlanStep",
    "Publisher",
    "Question",
    "Questions",
    "Session",
    "SetPermissions",
    "Sink",
    "Started",
    "Step",
    "ToolCall",
    "new_id",
]
