"""Candidates that look for what other candidates, or the canonical solution, left in memory."""

from __future__ import annotations

_SCAN = """
import ctypes, re, sys


def _memory():
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
    with open("/proc/self/maps") as maps:
        regions = [line.split() for line in maps]
    for fields in regions:
        start, end = (int(text, 16) for text in fields[0].split("-"))
        if "r" in fields[1] and fields[-1] not in ("[vvar]", "[vsyscall]", "[vvar_vclock]") and end - start < 2**28:
            yield ctypes.string_at(start, end - start)


def _frames():
    frame = sys._getframe().f_back
    while frame:
        yield frame
        frame = frame.f_back
"""

SCANNER = (
    _SCAN
    + """
def f():
    found = set()
    for region in _memory():
        found.update(match.decode() for match in re.findall(rb"MARK[E]R-[a-z]+", region))
    return sorted(found)
"""
)
"""Returns every `MARKER-word` in its memory; holds none itself."""

WALKER = (
    _SCAN
    + """
def _texts(thing, depth, seen):
    if id(thing) in seen or depth > 6:
        return
    seen.add(id(thing))
    if isinstance(thing, (str, bytes, bytearray)):
        yield thing if isinstance(thing, str) else bytes(thing).decode("latin-1")
    elif isinstance(thing, dict):
        for key, value in list(thing.items()):
            yield from _texts(key, depth, seen)
            yield from _texts(value, depth + 1, seen)
    elif isinstance(thing, (list, tuple, set, frozenset)):
        for value in list(thing):
            yield from _texts(value, depth + 1, seen)
    else:
        yield from _texts(getattr(thing, "__dict__", None), depth + 1, seen)


def f():
    found, names, seen = set(), [], set()
    for frame in _frames():
        names.append(frame.f_code.co_name)
        for text in _texts(dict(frame.f_locals), 0, seen):
            found.update(re.findall("MARK[E]R-[a-z]+", text))
    return sorted(found), names
"""
)
"""Returns every `MARKER-word` that it reaches through frames, and the names of the frames."""

THIEF = (
    _SCAN
    + """
NAME = "@ENTRY@"
HOW = []


def _find():
    data = b"\\n".join(_memory())
    for match in re.finditer(rb"def " + NAME.encode() + rb"[(]", data):
        low = data.rfind(b"\\0", 0, match.start()) + 1
        text = data[low : data.find(b"\\0", match.start())].decode("utf-8", "replace")
        key = text.find('"source": "')
        if key >= 0:
            import json
            try: text = json.JSONDecoder().raw_decode(text[key + 10 :])[0]
            except ValueError: pass
        if "HOW" in text: continue
        space = {}
        try: exec(text, space)
        except BaseException: continue
        if callable(space.get(NAME)): yield space[NAME]


for _found in _find():
    globals()[NAME] = _found
    break
else:
    raise LookupError("nothing found")
"""
)


def thief(entry_point: str) -> str:
    """A candidate that searches its memory for a program which defines the entry point, and answers with that."""
    return THIEF.replace("@ENTRY@", entry_point)
