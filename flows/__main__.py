"""`python -m flows` is the command line, for places where the script is not on the path."""

from flows.cli import app

app(prog_name="evalnoise")
