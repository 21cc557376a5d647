"""A display that is a picture: its role says that it is a text, and it offers none."""

import sys

import gi

gi.require_version("Gtk", "3.0")
from gi.repository import Atk, Gtk  # noqa: E402

window = Gtk.Window(title="Counter")
box = Gtk.Box(orientation=Gtk.Orientation.VERTICAL)
display = Gtk.Image.new_from_file(sys.argv[1])
display.get_accessible().set_role(Atk.Role.TEXT)
box.pack_start(display, False, False, 0)
box.pack_start(Gtk.Button(label="Clear"), False, False, 0)
window.add(box)
window.connect("destroy", Gtk.main_quit)
window.show_all()
Gtk.main()
