"""What the numbers of the accessibility protocol of Linux (AT-SPI) mean."""

from __future__ import annotations

# In the order of AtspiRole.
ROLES = (
    "invalid, accelerator label, alert, animation, arrow, calendar, canvas, check box, check menu item, color chooser, "
    "column header, combo box, date editor, desktop icon, desktop frame, dial, dialog, directory pane, drawing area, "
    "file chooser, filler, focus traversable, font chooser, frame, glass pane, html container, icon, image, "
    "internal frame, label, layered pane, list, list item, menu, menu bar, menu item, option pane, tab, tab list, "
    "panel, password, popup menu, progress bar, button, radio button, radio menu item, root pane, row header, "
    "scroll bar, scroll pane, separator, slider, spin button, split pane, status bar, table, cell, "
    "table column header, table row header, tearoff menu item, terminal, text, toggle button, tool bar, tool tip, "
    "tree, tree table, unknown, viewport, window, extended, header, footer, paragraph, ruler, application, "
    "autocomplete, editbar, embedded, entry, chart, caption, document, heading, page, section, redundant object, form, "
    "link, input method window, table row, tree item, document spreadsheet, document presentation, document text, "
    "document web, document email, comment, list box, grouping, image map, notification, info bar, level bar, "
    "title bar, block quote, audio, video, definition, article, landmark, log, marquee, math, rating, timer, static, "
    "math fraction, math root, subscript, superscript, description list, description term, description value, "
    "footnote, content deletion, content insertion, mark, suggestion, button menu, switch"
).split(", ")

# In the order of AtspiStateType.
STATES = (
    "invalid, active, armed, busy, checked, collapsed, defunct, editable, enabled, expandable, expanded, focusable, "
    "focused, has tooltip, horizontal, iconified, modal, multi line, multiselectable, opaque, pressed, resizable, "
    "selectable, selected, sensitive, showing, single line, stale, transient, vertical, visible, manages descendants, "
    "indeterminate, required, truncated, animated, invalid entry, supports autocompletion, selectable text, "
    "is default, visited, checkable, has popup, read only"
).split(", ")

# What people click on or write to.
INTERACTIVE = frozenset(
    "button, toggle button, button menu, switch, link, check box, radio button, menu item, check menu item, "
    "radio menu item, menu, combo box, tab, list item, tree item, cell, entry, password, text, spin button, slider, "
    "column header, table column header, icon, option pane, terminal".split(", ")
)
# Parts of windows that open beside the window they belong to.
POPPING = frozenset("menu, popup menu, menu item, check menu item, radio menu item, tool tip, window".split(", "))
TOPS = frozenset("frame, dialog, window, file chooser, color chooser, font chooser, alert, option pane".split(", "))
# What cuts off that part of its content which does not fit.
CLIPPING = frozenset("scroll pane, viewport, frame, dialog, document web, document, internal frame".split(", "))
# Boxes for layout, which tell nothing if they have no name.
STRUCTURE = frozenset(
    "filler, panel, section, split pane, scroll pane, viewport, layered pane, glass pane, root pane, grouping, "
    "unknown, redundant object, separator, extended, html container, scroll bar, tool bar, menu bar, tab list, list, "
    "table, form, list box, tree, status bar, table row, landmark".split(", ")
)
WRITABLE = frozenset("entry, password, text, spin button, terminal, combo box, document text".split(", "))

# Words that people add to a name to say what it is.
KINDS = {
    "button": frozenset({"button", "toggle button", "button menu", "radio button", "switch", "menu"}),
    "link": frozenset({"link"}),
    "checkbox": frozenset({"check box", "check menu item"}),
    "check box": frozenset({"check box", "check menu item"}),
    "radio button": frozenset({"radio button", "radio menu item"}),
    "menu item": frozenset({"menu item", "check menu item", "radio menu item", "menu"}),
    "menu": frozenset({"menu", "menu item", "button menu", "popup menu"}),
    "tab": frozenset({"tab"}),
    "field": frozenset({"entry", "password", "text", "spin button", "combo box"}),
    "text field": frozenset({"entry", "password", "text", "spin button"}),
    "box": frozenset({"entry", "text", "check box", "combo box", "password"}),
    "dropdown": frozenset({"combo box"}),
    "list": frozenset({"combo box", "list", "list box"}),
    "slider": frozenset({"slider"}),
    "icon": frozenset({"icon", "image", "button", "toggle button", "link", "button menu"}),
    "image": frozenset({"image", "icon"}),
}


def role_name(number: int) -> str:
    return ROLES[number] if 0 <= number < len(ROLES) else "unknown"


def state_names(words: list[int]) -> frozenset[str]:
    """The states whose bits are set in the two 32-bit words."""
    bits = (words[0] if words else 0) | (words[1] << 32 if len(words) > 1 else 0)
    return frozenset(name for number, name in enumerate(STATES) if bits >> number & 1)
