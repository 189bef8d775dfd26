"""Study files: YAML in, a validated study out, every problem with its place; and the reference pages of the format."""
