"""Mail, text messages, calendars and contacts: the user's own, on macOS or on the servers that the settings name."""
