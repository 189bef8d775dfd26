"""Importers: other tools' files become rows of a recording."""
