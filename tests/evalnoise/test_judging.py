"""Judges' answers: what is a verdict, and what is none."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalnoise.judging import ParsedVerdict, parse_verdict, verdict_of
from schemas.records import Response, ResponseClass, Verdict

NONE = "no verdict on the first line"
CONFLICT = "conflicting verdicts"


@pytest.mark.parametrize(
    ("text", "verdict", "confidence"),
    [
        ("VERDICT: PASS\nCONFIDENCE: 90\nIt adds.", "pass", 90.0),
        ("VERDICT: FAIL\nCONFIDENCE: 0", "fail", 0.0),
        ("VERDICT: FAIL", "fail", None),
        ("\n\n  verdict: pass  \r\n\r\nconfidence: 12.5\r\n", "pass", 12.5),
        ("**VERDICT: PASS**\n**CONFIDENCE: 80%**", "pass", 80.0),
        ("**VERDICT:** FAIL\n**CONFIDENCE:** 80", "fail", 80.0),
        ("VERDICT: **FAIL**\nCONFIDENCE: **80/100**", "fail", 80.0),
        ("`VERDICT: PASS`\n`CONFIDENCE: 80 / 100`", "pass", 80.0),
        ("__VERDICT: PASS__", "pass", None),
        ("Verdict : Pass", "pass", None),
        ("VERDICT: PASS\nCONFIDENCE: 101", "pass", None),
        ("VERDICT: PASS\nCONFIDENCE: -5", "pass", None),
        ("VERDICT: PASS\nCONFIDENCE: high", "pass", None),
        ("VERDICT: PASS\nCONFIDENCE: nan", "pass", None),
        ("VERDICT: PASS\nCONFIDENCE: ٩٠", "pass", None),
        ("VERDICT: PASS\nBecause it adds.\nCONFIDENCE: 70", "pass", 70.0),
        ("VERDICT: PASS\nCONFIDENCE: 70\nCONFIDENCE: 20", "pass", 70.0),
        ("CONFIDENCE: 10\nVERDICT: PASS", None, NONE),
        ("VERDICT: PASS\nThe code is right.\nVERDICT: PASS", "pass", None),
        ("VERDICT: PASS\nI first thought the verdict: fail, but no.", "pass", None),
        ("<think>VERDICT: FAIL?\n no</think>\n\nVERDICT: PASS\nCONFIDENCE: 60", "pass", 60.0),
        ("VERDICT: PASS\nno reason to downgrade: insufficient", "pass", None),
    ],
)
def test_what_an_answer_says(text, verdict, confidence):
    if verdict is None:
        assert parse_verdict(text) == ParsedVerdict(Verdict.UNPARSED, None, confidence)
    else:
        assert parse_verdict(text) == ParsedVerdict(Verdict(verdict), confidence, "")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty answer"),
        (" \n\t\n", "empty answer"),
        ("GRADE: CI", NONE),
        ("GRADE: C", NONE),
        ("ANSWER: C", NONE),
        ("PASS", NONE),
        ("VERDICT PASS", NONE),
        ("VERDICT: PASSED", NONE),
        ("VERDICT: PASS/FAIL", NONE),
        ("VERDICT: PASS or FAIL", NONE),
        ("VERDICT: PASS because it adds", NONE),
        ("VERDICT: PA", NONE),
        ("VERDICT:", NONE),
        ("VERDICT: INCORRECT", NONE),
        ("VERDICT: PA\u017fS", NONE),
        ("My VERDICT: PASS", NONE),
        ("Let me think about the program.\nVERDICT: PASS", NONE),
        ("GRADE: C ... no reason to downgrade: insufficient", NONE),
        ("VERDICT: PASS\nOn reflection:\nVERDICT: FAIL", CONFLICT),
        ("VERDICT: FAIL\n**verdict: pass** after all", CONFLICT),
        ("VERDICT: PASS\r\nVERDICT: FAIL\r\nVERDICT: PASS", CONFLICT),
        ("<think>VERDICT: PASS", "thinking that does not end"),
        ("<think>all of it</think>", "empty answer"),
        ("\ud835", NONE),
    ],
)
def test_what_is_no_verdict(text, reason):
    assert parse_verdict(text) == ParsedVerdict(Verdict.UNPARSED, None, reason)


@given(st.text())
def test_any_text_has_a_class_and_only_unparsed_has_a_reason(text):
    parsed = parse_verdict(text)
    assert (parsed.verdict is Verdict.UNPARSED) == bool(parsed.reason)


@given(st.sampled_from(["PASS", "FAIL"]), st.integers(0, 100))
def test_the_asked_for_form_is_always_read(word, number):
    assert parse_verdict(f"VERDICT: {word}\nCONFIDENCE: {number}\n") == ParsedVerdict(Verdict(word.lower()), float(number), "")


@pytest.mark.parametrize(
    "text",
    ["*" * 200_000 + "x", "VERDICT" + " " * 200_000 + "x", "VERDICT: PASS\nCONFIDENCE: 5" + "*" * 200_000 + "x"],
    ids=["stars", "spaces", "confidence"],
)
def test_hostile_lines_take_no_time(text):
    began = time.process_time()
    parse_verdict(text)
    assert time.process_time() - began < 1


SAYS_FAIL = "VERDICT: FAIL\nCONFIDENCE: 90\nBecause"


@pytest.mark.parametrize("kind", sorted(set(ResponseClass) - {ResponseClass.COMPLETE}))
def test_an_answer_that_is_not_complete_is_no_verdict_and_no_failure(kind):
    """Hard input 11: a judge that was cut off, declined or was filtered has not said that the candidate is wrong."""
    assert verdict_of(Response(SAYS_FAIL, kind)) == ParsedVerdict(Verdict.UNPARSED, None, kind.value)


@pytest.mark.parametrize(
    ("text", "verdict", "reason"),
    [
        (SAYS_FAIL, "fail", ""),
        # The only line may have gone on.
        ("VERDICT: FAIL", "unparsed", "empty answer"),
        ("VERDICT: FAIL\n", "fail", ""),
        ("VERDICT: PASS\nNo.\nVERDICT: FAIL\nand", "unparsed", CONFLICT),
        ("<think>VERDICT: PASS\nbut", "unparsed", "thinking that does not end"),
    ],
)
def test_a_truncated_answer_may_be_read_as_far_as_its_lines_are_whole(text, verdict, reason):
    found = verdict_of(Response(text, ResponseClass.TRUNCATED), read_truncated=True)
    assert (found.verdict.value, found.reason) == (verdict, reason)
    others = set(ResponseClass) - {ResponseClass.COMPLETE, ResponseClass.TRUNCATED}
    assert {verdict_of(Response(text, kind), read_truncated=True).verdict for kind in others} == {Verdict.UNPARSED}


@pytest.mark.parametrize(
    "text",
    ["GRADE: C ... no reason to downgrade: insufficient", "GRADE: CI", "ANSWER: C"],
    ids=["hard input 8", "hard input 9", "hard input 10"],
)
def test_a_complete_answer_without_a_verdict_line_is_unparsed(text):
    assert verdict_of(Response(text, ResponseClass.COMPLETE)) == ParsedVerdict(Verdict.UNPARSED, None, NONE)
