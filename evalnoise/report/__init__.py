"""Words and tables about a finished study."""
