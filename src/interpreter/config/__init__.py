"""What users configure: settings, profiles, and the folders they are kept in."""
