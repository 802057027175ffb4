"""Circles of imports between the files of a crate, for tools/check-imports.

An import is what a `use` or a path (`crate::`, `super::`, `self::`) names in code that is not a test, resolved through re-exports to the
file that defines it. A file that names its own children is not an import: a module consists of them.
"""

import re

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
TEXT = re.compile(r'"(?:[^"\\]|\\.)*"|r#*".*?"#*', re.S)
USE = re.compile(r"^[ \t]*(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);", re.M)
PATH = re.compile(r"\b(?:crate|super|self)(?:::\w+)+")
TEST_MODULE = re.compile(r"#\[cfg\((?:all\()?test\b[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*([;{])")


def without_tests(text):
    """The code, and the names of the modules that are tests in files of their own."""
    text, tests = TEXT.sub('""', COMMENT.sub("", text)), set()
    while match := TEST_MODULE.search(text):
        end = match.end()
        if match[2] == ";":
            tests.add(match[1])
        else:
            depth = 1
            while depth and end < len(text):
                depth += {"{": 1, "}": -1}.get(text[end], 0)
                end += 1
        text = text[: match.start()] + text[end:]
    return text, tests


def leaves(tree):
    """(path, local name) of each leaf of a use tree."""
    tree = tree.strip()
    if "{" in tree:
        head, inner = tree.split("{", 1)
        inner, parts, depth = inner.rsplit("}", 1)[0], [""], 0
        for letter in inner:
            depth += {"{": 1, "}": -1}.get(letter, 0)
            if letter == "," and depth == 0:
                parts.append("")
            else:
                parts[-1] += letter
        return [(head.replace(" ", "") + path if path != "self" else head.rstrip(": "), name if path != "self" else head.rstrip(": ").split("::")[-1])
                for part in parts if part.strip() for path, name in leaves(part)]
    path, _, name = tree.partition(" as ")
    path = "".join(path.split())
    return [(path, name.strip() or path.split("::")[-1])]


class Room:
    """The files of a crate as modules."""

    def __init__(self, source):
        self.source = source
        self.files, self.code = {}, {}
        tests = set()
        for file in sorted(source.rglob("*.rs")):
            module = self.module_of(file)
            self.files[module] = file
            self.code[module], inner = without_tests(file.read_text(encoding="utf-8"))
            tests |= {module + (name,) for name in inner}
        for module in [m for m in self.files if any(m[: len(test)] == test for test in tests) or m[:1] == ("bin",)]:
            del self.files[module], self.code[module]
        self.uses = {module: [(bool(found[1]), path, name) for found in USE.finditer(code) for path, name in leaves(found[2])]
                     for module, code in self.code.items()}

    def module_of(self, file):
        parts = list(file.relative_to(self.source).with_suffix("").parts)
        if parts[-1] in ("mod", "lib", "main"):
            parts.pop()
        return tuple(parts)

    def absolute(self, path, module):
        """The segments from the crate's root; None for a path into another crate."""
        parts = path.split("::")
        if parts[0] == "crate":
            return parts[1:]
        if parts[0] in ("super", "self"):
            here = list(module)
            while parts and parts[0] in ("super", "self"):
                if parts.pop(0) == "super":
                    if not here:
                        return None
                    here.pop()
            return here + parts
        return list(module) + parts if module + (parts[0],) in self.files else None

    def target(self, path, module, depth=6):
        """The module whose file defines what the path names."""
        parts = self.absolute(path, module)
        if parts is None:
            return None
        at = ()
        while parts and at + (parts[0],) in self.files:
            at += (parts.pop(0),)
        if parts and depth and at in self.uses:
            for is_public, inner, name in self.uses[at]:
                if is_public and name == parts[0]:
                    return self.target(inner, at, depth - 1) or at
        return at if at in self.files else None

    def imports(self):
        """(module, module): the first names the second."""
        found = set()
        for module, code in self.code.items():
            paths = [path for _, path, _ in self.uses[module]] + PATH.findall(USE.sub("", code))
            for path in paths:
                target = self.target(path.removesuffix("::*"), module)
                if target is not None and target != module and target[: len(module)] != module:
                    found.add((module, target))
        return found

    def circles(self):
        """The files of each circle, sorted, the largest first."""
        following = {}
        for module, target in self.imports():
            following.setdefault(module, []).append(target)
        return sorted((sorted(str(self.files[m].relative_to(self.source)) for m in circle)
                       for circle in strongly_connected(self.files, following)), key=lambda c: (-len(c), c))


def strongly_connected(nodes, following):
    """Sets of more than one node that all reach each other (Tarjan, without recursion)."""
    index, low, stack, on, found = {}, {}, [], set(), []
    for start in nodes:
        if start in index:
            continue
        work = [(start, iter(following.get(start, ())))]
        index[start] = low[start] = len(index)
        stack.append(start), on.add(start)
        while work:
            node, rest = work[-1]
            for after in rest:
                if after not in index:
                    index[after] = low[after] = len(index)
                    stack.append(after), on.add(after)
                    work.append((after, iter(following.get(after, ()))))
                    break
                if after in on:
                    low[node] = min(low[node], index[after])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    circle = set()
                    while node not in circle:
                        circle.add(stack.pop())
                    on -= circle
                    if len(circle) > 1:
                        found.append(circle)
    return found
