"""Front ends: they show events and answer questions. They never import each other."""
