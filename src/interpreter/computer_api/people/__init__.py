"""Mail, calendar, contacts and SMS."""
