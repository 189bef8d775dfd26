"""Starter tasks about text: case, runs, wrapping, accents, labels."""

from __future__ import annotations

import unicodedata

from evalnoise.benchmarks.starter_tasks.declare import task


@task(
    "02-next-vowel",
    inputs=[
        ("",),
        ("a",),
        ("hello world",),
        ("UPPER case",),
        ("rhythm",),
        ("uUoO",),
        ("Queue, 2nd place!",),
        ("naïve café",),
        ("xyzzy\tEnd\n",),
        ("AEIOU aeiou",),
    ],
)
def next_vowel(text: str) -> str:
    """Replace each of the vowels a, e, i, o, u by the next one in that order; u becomes a.

    Capital vowels stay capital. All other characters, accented letters too, stay as they are.
    """
    result = ""
    for char in text:
        place = "aeiou".find(char.lower())
        if place < 0:
            result += char
            continue
        following = "aeiou"[(place + 1) % 5]
        result += following.upper() if char.isupper() else following
    return result


@task(
    "09-shorten-runs",
    inputs=[
        ("aaab", 2),
        ("aaab", 1),
        ("", 3),
        ("abc", 0),
        ("aabbaa", 1),
        ("!!!???", 2),
        ("mississippi", 1),
        ("aAaA", 1),
        ("zzzzz", 5),
        ("zzzzzz", 5),
        ("ééé ü", 2),
    ],
)
def shorten_runs(text: str, limit: int) -> str:
    """Shorten every run of one and the same character to at most `limit` characters.

    shorten_runs("aaab", 2) is "aab". With a limit of 0 nothing is left.
    """
    result = ""
    run = 0
    for place, char in enumerate(text):
        run = run + 1 if place > 0 and text[place - 1] == char else 1
        if run <= limit:
            result += char
    return result


@task(
    "16-wrap-words",
    inputs=[
        ("the quick brown fox", 9),
        ("the quick brown fox", 10),
        ("", 5),
        ("   ", 3),
        ("word", 4),
        ("words", 4),
        ("a bb ccc dddd eeeee", 3),
        ("extraordinarily long", 6),
        ("x  y   z", 1),
        ("ab cdefghij k", 4),
        ("tabs\tand\nlines", 8),
    ],
)
def wrap_words(text: str, width: int) -> list[str]:
    """Break a text into lines of at most `width` characters.

    Words (separated by any whitespace) are put on a line while they fit, joined by one space. A word longer than
    `width` starts on a line of its own and is cut into pieces of `width` characters; its last piece is a line to
    which more words may be added. A text without words has no lines.
    """
    lines: list[str] = []
    for word in text.split():
        if lines and len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += " " + word
            continue
        rest = word
        while len(rest) > width:
            lines.append(rest[:width])
            rest = rest[width:]
        lines.append(rest)
    return lines


@task(
    "23-count-accents",
    inputs=[
        ("",),
        ("plain",),
        ("café",),
        ("École élémentaire",),
        ("ñandú",),
        ("Ångström",),
        ("e\u0301e\u0300",),
        ("Việt Nam",),
        ("ß ø æ",),
        ("ÀÉÎÕÜ àéîõü",),
    ],
)
def count_accents(text: str) -> dict[str, int]:
    """Count, for each base letter in lower case, the accents (combining marks) that stand on it.

    Text may hold composed characters or separate marks: both count alike, so decompose it (NFD) first. A letter
    that carries two marks counts two. Letters without accents are not in the result. count_accents("Été") is {"e":
    2}.
    """
    counts: dict[str, int] = {}
    base = ""
    for char in unicodedata.normalize("NFD", text):
        if unicodedata.combining(char):
            counts[base] = counts.get(base, 0) + 1
        else:
            base = char.lower()
    return counts


@task(
    "30-common-affixes",
    inputs=[
        ([],),
        (["alone"],),
        (["preheat", "prepaint"],),
        (["abXcd", "abYcd"],),
        (["aba", "abaaba"],),
        (["aa", "aaa"],),
        (["", "abc"],),
        (["same", "same"],),
        (["left", "right", "light"],),
        (["test.py", "text.py", "te.py"],),
        (["xyz", "abc"],),
    ],
)
def common_affixes(words: list[str]) -> tuple[str, str]:
    """Longest common prefix of all words, and longest common suffix of what is left of them after that prefix.

    common_affixes(["abXcd", "abYcd"]) is ("ab", "cd"). Of a single word all is prefix. No words: two empty strings.
    """
    if not words:
        return "", ""
    shortest = min(map(len, words))
    prefix = 0
    while prefix < shortest and len({word[prefix] for word in words}) == 1:
        prefix += 1
    suffix = 0
    while suffix < shortest - prefix and len({word[len(word) - 1 - suffix] for word in words}) == 1:
        suffix += 1
    first = words[0]
    return first[:prefix], first[len(first) - suffix :]


@task(
    "37-read-options",
    inputs=[
        ("",),
        ("a=1",),
        ("a=1&b=2",),
        ("a=1&a=2",),
        ("flag",),
        ("flag&flag=x",),
        ("&&a=1&",),
        ("x=a=b",),
        ("name=two+words&=nokey",),
        ("k+1=v+1&k 1=w",),
        ("=",),
    ],
)
def read_options(text: str) -> dict[str, list[str]]:
    """Read options like ``a=1&b=2`` into a dictionary of lists.

    Parts are separated by ``&``; empty parts are skipped. The first ``=`` separates key and value; without it the
    value is an empty string. ``+`` means a space in keys and values. Values of one key keep their order. Parts with
    an empty key are skipped.
    """
    options: dict[str, list[str]] = {}
    for part in text.split("&"):
        key, _, value = part.replace("+", " ").partition("=")
        if key:
            options.setdefault(key, []).append(value)
    return options


@task(
    "44-next-label",
    inputs=[("A",), ("Z",), ("AZ",), ("ZZ",), ("AA",), ("XFD",), ("BZZ",), ("ZZZ",), ("HZZZZ",), ("M",), ("ZA",)],
)
def next_label(label: str) -> str:
    """Give the label of the next spreadsheet column.

    Labels run A, B, … Z, AA, AB, … AZ, BA, … ZZ, AAA and so on.
    """
    letters = list(label)
    place = len(letters) - 1
    while place >= 0 and letters[place] == "Z":
        letters[place] = "A"
        place -= 1
    if place < 0:
        return "A" + "".join(letters)
    letters[place] = chr(ord(letters[place]) + 1)
    return "".join(letters)
