"""Writes lib/cosched/forms.py, the types of the daemon's answers, from docs/schema/openapi.json.

python3 python/tests/make_forms.py           writes it
test_package.py                              compares
"""

import json
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
SCHEMA = HERE.parents[1] / "docs" / "schema" / "openapi.json"
FORMS = HERE.parent / "lib" / "cosched" / "forms.py"
#: What the package hands to its users, and what is in it.
SHOWN = ["Job", "Event", "JobUse", "Status", "NodeLoad", "LimitList", "StreamEvent"]
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


def type_of(schema, names):
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        names.append(name)
        return name
    if "oneOf" in schema or "anyOf" in schema:
        return " | ".join(type_of(part, names) for part in schema.get("oneOf") or schema["anyOf"])
    if "enum" in schema:
        return f"Literal[{', '.join(json.dumps(word) for word in schema['enum'])}]"
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(type_of({**schema, "type": one}, names) for one in kind)
    if kind == "array":
        if "prefixItems" in schema:
            return f"list[{' | '.join(dict.fromkeys(type_of(item, names) for item in schema['prefixItems']))}]"
        return f"list[{type_of(schema['items'], names)}]"
    if kind == "object":
        return f"dict[str, {type_of(schema['additionalProperties'], names)}]"
    return PLAIN[kind]


def form(name, schema, names):
    """A TypedDict. In functional form, as `class` is a key."""
    if "properties" not in schema:
        return [f"#: {line}" for line in schema.get("description", "").splitlines()] + [f"{name}: TypeAlias = {type_of(schema, names)!r}"]
    lines = [f"#: {line}".rstrip() for line in schema.get("description", "").splitlines()]
    lines.append(f'{name} = TypedDict("{name}", {{')
    for key, value in schema["properties"].items():
        text = value.get("description") or " ".join(part.get("description", "") for part in value.get("oneOf", []))
        lines += [f"    # {line}".rstrip() for line in text.strip().splitlines()]
        kind = type_of(value, names)
        kind = kind if key in schema.get("required", []) else f"NotRequired[{kind}]"
        lines.append(f'    "{key}": {kind!r},')
    return [*lines, "})"]


def make():
    schemas = json.loads(SCHEMA.read_text())["components"]["schemas"]
    wanted, parts = list(SHOWN), {}
    while wanted:
        name = wanted.pop(0)
        if name not in parts:
            parts[name] = form(name, schemas[name], wanted)
    head = '''"""The daemon's answers, as types. Made by python/tests/make_forms.py from docs/schema/openapi.json: do not edit.

They are plain dicts. Times that end in `_unix_ms` are milliseconds since 1970 (UTC).
"""

from __future__ import annotations

from typing import Literal, TypedDict

from cosched._typing import NotRequired, TypeAlias

__all__ = [
''' + "".join(f'    "{name}",\n' for name in sorted(parts)) + "]\n"
    return head + "".join("\n" + "\n".join(parts[name]) + "\n" for name in sorted(parts))


if __name__ == "__main__":
    FORMS.write_text(make())
