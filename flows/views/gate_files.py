"""A gate's decision for machines that show it: a JUnit report, and annotations of GitHub."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from evalnoise.stats.gates.gate import Decision
from evalnoise.store.files import write_result
from flows.cli_errors import printable
from flows.views.gate import as_json, benchmark_sentence, one_line, sentence
from tasks.gating import Compared, Outcome

_NOT_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LEVELS: Final = {Decision.PASS: "notice", Decision.BLOCK: "error", Decision.INCONCLUSIVE: "warning"}
_FACTS: Final = (
    "claim", "test", "covers", "difference", "lo", "hi", "level", "loss_limit", "margin", "p", "p_two_sided", "p_worse", "alpha",
    "one_sided", "power_at_margin", "n_tasks", "n_informative", "only_base", "only_new", "not_covered", "runs_base", "runs_new",
    "unmeasured_base", "unmeasured_new", "runs_to_settle", "tasks_to_settle", "clusters", "seed", "resamples",
)  # fmt: skip


def write_junit(outcome: Outcome, path: Path) -> None:
    """Write a report with a test case for each benchmark: a failure for block, an error for inconclusive. Raises StoreError."""
    write_result(path, junit(outcome))


def write_failed(path: Path, message: str) -> None:
    """Write a report of one test case in error: what is there until there is a decision, and stays if none comes."""
    suite = ET.Element("testsuite", name="evalnoise gate", tests="1", failures="0", errors="1", skipped="0")
    case = ET.SubElement(suite, "testcase", classname="evalnoise.gate", name="gate", time="0")
    ET.SubElement(case, "error", type="failed", message=_xml(message)).text = _xml(message)
    write_result(path, _bytes(suite))


def junit(outcome: Outcome) -> bytes:
    """The report as XML."""
    decisions = [member.decision for member in outcome.members]
    suite = ET.Element(
        "testsuite",
        name="evalnoise gate",
        tests=str(len(decisions)),
        failures=str(decisions.count(Decision.BLOCK)),
        errors=str(decisions.count(Decision.INCONCLUSIVE)),
        skipped="0",
    )
    for member, facts in zip(outcome.members, as_json(outcome)["benchmarks"], strict=True):
        case = ET.SubElement(suite, "testcase", classname="evalnoise.gate", name=_xml(member.benchmark), time="0")
        properties = ET.SubElement(case, "properties")
        for name in _FACTS:
            if facts[name] not in (None, ""):
                ET.SubElement(properties, "property", name=name, value=_xml(str(facts[name])))
        _verdict(case, member)
    ET.SubElement(suite, "system-out").text = _xml(sentence(outcome))
    return _bytes(suite)


def _bytes(suite: ET.Element) -> bytes:
    root = ET.Element("testsuites")
    root.append(suite)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True))


def _verdict(case: ET.Element, member: Compared) -> None:
    tag = {Decision.BLOCK: "failure", Decision.INCONCLUSIVE: "error"}.get(member.decision)
    if tag is not None:
        reasons = _xml("; ".join(member.reasons))
        ET.SubElement(case, tag, type=str(member.decision), message=reasons).text = _xml(benchmark_sentence(member))


def _xml(text: str) -> str:
    """Text without the characters that XML 1.0 cannot hold, not even escaped; others that do not show are escaped as in print."""
    return printable(_NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text))


def github_lines(outcome: Outcome) -> Iterator[str]:
    """A workflow command of GitHub for each benchmark: an error for block, a warning for inconclusive, a notice for pass."""
    for member in outcome.members:
        title = _property(one_line(f"evalnoise gate, {member.benchmark}: {member.decision}"))
        yield f"::{_LEVELS[member.decision]} title={title}::{_data(benchmark_sentence(member))}"


def _data(text: str) -> str:
    """Text as the data of a workflow command: it cannot end the line and begin another command."""
    flat = _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
    escaped = flat.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    # Other line ends of Unicode end no command, but need not be there.
    return re.sub("[\u0085\u2028\u2029]", " ", escaped)


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
