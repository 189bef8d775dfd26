"""The reference page of the study file, made from the models; `python -m evalnoise.studyfile.reference` writes page and schema."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evalnoise.studyfile.load import study_json_schema
from schemas.verifier import REQUIREMENT

PAGE = Path("docs/reference/study.md")
SCHEMA = Path("schemas/study.schema.json")
_LONG = 60

_HEAD = """\
# The study file

This page is made from the models in `schemas/study.py`, `provider.py` and `verifier.py` by
`python -m evalnoise.studyfile.reference`; do not edit it by hand.
The same facts for editors are in `schemas/study.schema.json`: put `# yaml-language-server: $schema=<path to it>` on the first line
of a study. `evalnoise init` does that.

* A study is one YAML document in UTF-8, with the types of YAML 1.2: `no` is text, `1e-3` is a number, `2026-11-01` is text.
  Anchors, aliases and `<<` merges work. A key that is repeated, unknown or of the wrong type is an error that names the line.
* Any text may hold `${NAME}` or `${NAME:-default}` from the environment; `$${` stands for a plain `${`. Variables whose names look
  like secrets are refused, because a study is frozen into the store: providers name theirs in `api_key_env`.
* Relative paths are taken from the working directory.
* `--set path=value` changes one value before the study is checked. Lists are entered by index or by name, the value is YAML:
  `--set replicates=3`, `--set stacks.0.model=x`, `--set conditions.live.provider.temperature=0.3`,
  `--set 'analysis.deltas=[0.01, 0.02]'`.
"""


def study_reference() -> str:
    """The page in Markdown: one section per model, in the order in which a reader meets them."""
    schema = study_json_schema()
    sections = [_HEAD, _section("Study", [], {"Study": schema, **schema["$defs"]})]
    for name, users in _in_order(schema).items():
        sections.append(_section(name, users, schema["$defs"]))
    return "\n".join(sections)


def schema_text() -> str:
    """The JSON Schema as it is kept."""
    return json.dumps(study_json_schema(), indent=2, ensure_ascii=False) + "\n"


def _in_order(schema: dict[str, Any]) -> dict[str, list[str]]:
    """Models below the study, breadth first, each with the keys that hold it."""
    found: dict[str, list[str]] = {}
    waiting: list[dict[str, Any]] = [schema]
    while waiting:
        for key, prop in waiting.pop(0)["properties"].items():
            for name in _references(prop):
                if name not in found:
                    found[name] = []
                    waiting.append(schema["$defs"][name])
                if key not in found[name]:
                    found[name].append(key)
    return found


def _references(prop: dict[str, Any]) -> Iterator[str]:
    if "$ref" in prop:
        yield prop["$ref"].rsplit("/", 1)[1]
    for inner in (*prop.get("oneOf", ()), *prop.get("anyOf", ()), prop.get("items", {})):
        if inner:
            yield from _references(inner)


def _section(name: str, users: list[str], models: dict[str, Any]) -> str:
    """One model: what it is, where it is used, its keys, and defaults that are too long for a table."""
    model = models[name]
    required = set(model.get("required", ()))
    used = f" In {', '.join(f'`{user}`' for user in users)}." if users else ""
    lines = [f"## {name}", "", model["description"] + used, "", "| key | value | default | meaning |", "|---|---|---|---|"]
    keys = sorted(model["properties"], key=lambda key: key != "name")  # inherited keys come before a kind's own name
    for key in keys:
        prop = model["properties"][key]
        default = "**required**" if key in required else _default(prop)
        meaning = prop.get("description") or models[next(_references(prop))]["description"]
        lines.append(f"| `{key}` | {_type(prop)} | {default} | {_cell(meaning)} |")
    for key in keys:
        text = model["properties"][key].get("default")
        if isinstance(text, str) and len(text) > _LONG:
            lines += ["", f"Default of `{key}`:", "", "````text", text, "````"]
    return "\n".join([*lines, ""])


def _default(prop: dict[str, Any]) -> str:
    value = prop.get("default")
    if value is None:
        return "`{}`" if prop.get("type") == "object" else "absent"
    if isinstance(value, dict):
        return "its defaults"
    if isinstance(value, str) and len(value) > _LONG:
        return "below"
    return f"`{json.dumps(value, ensure_ascii=False)}`"


_WORDS = {"integer": "whole number", "number": "number", "string": "text", "object": "mapping", "boolean": "true or false"}
_BOUNDS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}


def _type(prop: dict[str, Any]) -> str:
    """The values that a key takes, in words."""
    options = [o for o in prop.get("oneOf", prop.get("anyOf", ())) if o.get("type") != "null"]
    if options:
        return " or ".join(_type(option) for option in options)
    if "$ref" in prop:
        name = prop["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    if "const" in prop or "enum" in prop:
        return ", ".join(f"`{value}`" for value in prop.get("enum", [prop.get("const")]))
    if prop.get("type") == "array":
        return f"list of {_type(prop['items'])}"
    if "pattern" in prop:
        return "`name==version`" if prop["pattern"] == REQUIREMENT else "name"
    return " ".join(
        [_WORDS[prop["type"]], ", ".join(f"{sign} {prop[key]}" for key, sign in _BOUNDS.items() if key in prop)]
    ).strip()


def _cell(text: str) -> str:
    return text.replace("\n", " ").replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(study_reference(), encoding="utf-8")
    SCHEMA.write_text(schema_text(), encoding="utf-8")
