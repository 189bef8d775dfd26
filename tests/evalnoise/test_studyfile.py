"""Study files: what loads, and what every mistake says."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from evalnoise.studyfile.load import load_study, opened_study
from schemas.errors import ExitCode, StudyError
from schemas.provider import OracleProvider
from schemas.study import Study

CASES = yaml.safe_load(Path(__file__).with_name("studyfile_cases.yaml").read_text(encoding="utf-8"))
TWO_DOCUMENTS = "expected a single document in the stream but found another document"
NEAR = "Check indentation, quotes and brackets near that line."
CHECK_PATH = "Check the path; `evalnoise init` writes a commented study."

GOOD = """\
study: small
benchmark: {name: starter}
stacks:
  - name: a
    model: m
    provider:
      name: oracle
      temperature: 0
  - name: b.1
    model: m
    provider: {name: oracle}
conditions:
  - name: live
    kind: live
  - name: replay
    kind: replay
    source: {condition: live}
"""


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def put(text: str | bytes) -> Path:
        path = Path("s.yaml")
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return put


def failure(path: Path, *overrides: str) -> str:
    with pytest.raises(StudyError) as caught:
        load_study(path, overrides)
    assert caught.value.exit_code is ExitCode.STUDY
    return str(caught.value)


def changed(old: str, new: str) -> str:
    assert GOOD.count(old) == 1, old
    return GOOD.replace(old, new)


def test_good_study_loads_with_defaults(write):
    study = load_study(write(GOOD))
    assert (study.study, study.replicates, study.analysis.resamples) == ("small", 5, 20_000)
    provider = study.stacks[0].provider
    assert isinstance(provider, OracleProvider)
    assert (provider.temperature, type(provider.temperature)) == (0.0, float)


@pytest.mark.parametrize("case", CASES["mistakes"], ids=lambda case: case["message"][:60])
def test_one_mistake_one_sentence(write, case):
    assert failure(write(changed(case["old"], case["new"]))) == case["message"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "s.yaml:1: expected a study, found an empty file. `evalnoise init` writes one to begin with."),
        (b"# only a comment\n", "s.yaml:1: expected a study, found an empty file. `evalnoise init` writes one to begin with."),
        (b"~", "s.yaml:1: expected a mapping, found nothing. Correct the value."),
        (b"- 1\n", "s.yaml:1: expected a mapping, found a list of 1. Correct the value."),
        (b"study: x\n---\nstudy: y\n", f"s.yaml:2: expected valid YAML, found a syntax error ({TWO_DOCUMENTS}). {NEAR}"),
        (b"study: x\nmodel: \xff\n", "s.yaml:2: expected text in UTF-8, found the byte 0xFF. Save the file as UTF-8."),
        (b"study: x\nmodel: \x00\n", "s.yaml:2: expected text in UTF-8, found a zero byte. Save the file as UTF-8."),
        (b"study: x\nmodel: \x07\n", "s.yaml:2: expected printable text, found the character U+0007. Remove it."),
        (b"#" * (1 << 20) + b"\n", f"s.yaml: expected at most 1048576 bytes, found a larger file. {CHECK_PATH}"),
    ],
)  # fmt: skip
def test_files_that_are_no_study(write, content, message):
    assert failure(write(content)) == message


def test_a_source_that_the_command_line_took_away_is_blamed_on_it(write):
    label = "--set conditions.replay.source=null"
    message = failure(write(GOOD), label.removeprefix("--set "))
    assert message.startswith(
        f"{label}: conditions.1.source: expected a source, because the provider is not a recording, found nothing."
    )
    message = failure(write(changed("kind: replay", "kind: reverify")), label.removeprefix("--set "))
    assert message.startswith(f"{label}: conditions.1.source: expected a source, because a reverify condition")


@pytest.mark.parametrize(
    ("where", "placed"),
    [
        ("stacks.0.provider.temperature", "s.yaml:8: stacks.0.provider.temperature"),
        # Nothing was written there: the nearest place above it.
        ("stacks.0.verifier.checker", "s.yaml:4: stacks.0.verifier.checker"),
        ("stacks.1.model", "--set stacks.b.1.model=x: stacks.1.model"),
        ("--replicates", "--replicates"),
        ("study.yaml:3", "study.yaml:3"),
    ],
)
def test_errors_of_later_steps_get_file_and_line(write, where: str, placed: str):
    with pytest.raises(StudyError) as caught, opened_study(write(GOOD), ["stacks.b.1.model=x"]):
        raise StudyError(where, expected="this", found="that", remedy="Do so.")
    assert str(caught.value) == f"{placed}: expected this, found that. Do so."


def test_missing_file_and_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert failure(Path("none.yaml")).startswith("none.yaml: expected a study file, found no such file.")
    assert failure(Path()).startswith(".: expected a study file, found a folder.")
    assert failure(Path("a\0b")).startswith("a\0b: expected a readable study file, found embedded null byte.")


def test_every_problem_is_listed_in_the_order_of_the_file(write):
    text = changed("study: small", "study: 7").replace("kind: live\n", "kind: lives\n").replace("name: b.1", "nam: b")
    message = failure(write(text + "night: ${EVALNOISE_NOT_SET}\n"))
    head, *rest = message.splitlines()
    assert head == "s.yaml: expected a valid study, found 5 problems. Correct these:"
    assert [re.match(r"  (s\.yaml:\d+: \S+):", line).group(1) for line in rest] == [
        "s.yaml:1: study", "s.yaml:9: stacks.1.name", "s.yaml:9: stacks.1.nam", "s.yaml:14: conditions.0.kind", "s.yaml:18: night",
    ]  # fmt: skip


def test_at_most_ten_problems_are_shown(write):
    lines = failure(write(GOOD + "".join(f"extra{i}: 1\n" for i in range(13)))).splitlines()
    assert lines[0] == "s.yaml: expected a valid study, found 13 problems. Correct these:"
    assert len(lines) == 12
    assert lines[-1] == "  … and 3 more"


def test_messages_hold_no_words_of_pydantic(write):
    text = "study: 1\nbenchmark: 3\nstacks: {a: 1}\nconditions: [3, {name: x, kind: 1, provider: []}]\nreplicates: 1.5\njudge: []\n"
    message = failure(write(text))
    assert not re.search(r"Input|tuple|dictionary|instance|tag|discriminator|\[type=|pydantic", message)
    assert "s.yaml:5: replicates: expected a whole number, found the number 1.5." in message
    assert "s.yaml:3: stacks: expected a list, found a mapping with a." in message
    assert "s.yaml:4: conditions.0: expected a mapping, found the number 3." in message


def test_anchors_aliases_and_merges(write):
    text = changed("  - name: a\n", "  - &a\n    name: a\n").replace(
        "  - name: b.1\n    model: m\n    provider: {name: oracle}\n", "  - <<: *a\n    name: c\n    max_tokens: 7\n"
    )
    first, second = load_study(write(text)).stacks
    assert second == first.model_copy(update={"name": "c", "max_tokens": 7})


def test_several_merges_first_wins_and_own_keys_win_over_all(write):
    text = GOOD + "analysis:\n  <<: [{seed: 1, alpha: 0.1}, {seed: 2, power: 0.9}]\n  alpha: 0.2\n"
    analysis = load_study(write(text)).analysis
    assert (analysis.seed, analysis.alpha, analysis.power) == (1, 0.2, 0.9)
    assert "expected a mapping after `<<`" in failure(write(GOOD + "analysis:\n  <<: 3\n"))


def test_an_alias_inside_itself_is_an_error(write):
    assert "s.yaml:18: limits.x: expected a value that ends" in failure(write(GOOD + "limits: &l {x: *l}\n"))


@pytest.mark.parametrize("width", [9, 2])
def test_nested_aliases_do_not_explode(write, width):
    lines = ["a0: &a0 [x, x]"] + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * width)}]" for i in range(1, 50)]
    start = time.process_time()
    message = failure(write("\n".join(lines)))
    assert "expected at most 100000 values, found more, after aliases are followed" in message
    assert time.process_time() - start < 10


def test_deep_nesting_is_an_error(write):
    assert "nested too deeply" in failure(write("a: " + "[" * 50_000))
    assert "too deep a nesting" in failure(write("a: " + "[" * 100 + "]" * 100))


def test_types_are_those_of_yaml_1_2(write):
    text = GOOD + "night: 2026-11-01\nanalysis: {alpha: 1e-3, seed: 0x10, deltas: [1, .5]}\n"
    study = load_study(write(text))
    assert (study.night, study.analysis.alpha, study.analysis.seed, study.analysis.deltas) == ("2026-11-01", 0.001, 16, (1.0, 0.5))
    message = failure(write(changed("    provider:\n", "    retry: no\n    provider:\n")))
    assert "stacks.0.retry: expected 'none', 'resample' or 'with-feedback', found the text 'no'" in message


def test_keys_are_text_as_written(write):
    text = GOOD.replace(
        "provider: {name: oracle}", "provider: {name: openai, extra: {logit_bias: {50256: -100, true: 1, 2026-11-01: 2}}}"
    )
    spec = load_study(write(text)).stacks[1].provider
    assert spec.extra == {"logit_bias": {"50256": -100, "true": 1, "2026-11-01": 2}}


def test_byte_order_mark_and_windows_line_ends(write):
    assert load_study(write(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())) == load_study(write(GOOD))


class TestEnvironment:
    def prompt(self, write, text):
        path = write(changed("    model: m\n    provider:\n", f"    model: m\n    prompt: '{text}'\n    provider:\n"))
        return load_study(path).stacks[0].prompt

    def test_expansion(self, write, monkeypatch):
        monkeypatch.setenv("EVALNOISE_T", "v")
        monkeypatch.setenv("EVALNOISE_EMPTY", "")
        monkeypatch.delenv("EVALNOISE_UNSET", raising=False)
        assert (
            self.prompt(write, "x ${EVALNOISE_T}/${EVALNOISE_UNSET:-d e}/${EVALNOISE_EMPTY:-f}/${EVALNOISE_EMPTY}.")
            == "x v/d e/f/."
        )

    def test_expanded_text_is_not_expanded_again(self, write, monkeypatch):
        monkeypatch.setenv("EVALNOISE_T", "${EVALNOISE_T}")
        assert self.prompt(write, "${EVALNOISE_T}") == "${EVALNOISE_T}"

    def test_what_stays(self, write):
        assert self.prompt(write, "$HOME $${HOME} ${} ${1} {{ task.prompt }}") == "$HOME ${HOME} ${} ${1} {{ task.prompt }}"

    def test_unset_names_the_line(self, write, monkeypatch):
        monkeypatch.delenv("EVALNOISE_UNSET", raising=False)
        message = failure(write(changed("study: small", "\nstudy: ${EVALNOISE_UNSET}")))
        assert message == (
            "s.yaml:2: study: expected the environment variable EVALNOISE_UNSET, found it is not set. "
            "Set it, or write ${EVALNOISE_UNSET:-default}."
        )

    @pytest.mark.parametrize("name", ["OPENAI_API_KEY", "HF_TOKEN", "DB_PASSWORD", "MY_SECRET_NAME"])
    def test_secrets_are_refused_and_not_shown(self, write, monkeypatch, name):
        monkeypatch.setenv(name, "sk-hidden")
        message = failure(write(changed("study: small", f"study: ${{{name}}}")))
        assert message.startswith(f"s.yaml:1: study: expected no secret in the study, found the variable {name}. ")
        assert "sk-hidden" not in message


class TestSet:
    @pytest.mark.parametrize(
        ("override", "pick", "value"),
        [
            ("replicates=3", lambda s: s.replicates, 3),
            ("stacks.0.model=x", lambda s: s.stacks[0].model, "x"),
            ("stacks.a.model=x=y", lambda s: s.stacks[0].model, "x=y"),
            ("stacks.b.1.model=x", lambda s: s.stacks[1].model, "x"),
            ("conditions.live.provider.temperature=0.3", lambda s: s.conditions[0].provider, {"temperature": 0.3}),
            ("analysis.deltas=[0.1, 1]", lambda s: s.analysis.deltas, (0.1, 1.0)),
            ("limits.max_cost=", lambda s: s.limits.max_cost, None),
            ("stacks.1={name: z, model: q, provider: {name: oracle}}", lambda s: s.stacks[1].name, "z"),
            ("night=2026-11-01", lambda s: s.night, "2026-11-01"),
        ],
    )
    def test_sets(self, write, override, pick, value):
        assert pick(load_study(write(GOOD), [override])) == value

    def test_later_ones_win_and_build_on_earlier_ones(self, write):
        study = load_study(write(GOOD), ["stacks.a.name=c", "stacks.c.model=x", "replicates=2", "replicates=4"])
        assert (study.stacks[0].name, study.stacks[0].model, study.replicates) == ("c", "x", 4)

    @pytest.mark.parametrize("case", CASES["overrides"], ids=lambda case: case["override"])
    def test_mistakes_name_the_option(self, write, case):
        assert failure(write(GOOD), case["override"]) == case["message"]

    def test_an_override_can_heal_the_file(self, write):
        assert load_study(write(changed("study: small", "study: 7")), ["study=ok"]).study == "ok"

    def test_a_file_that_is_no_mapping_says_so_whatever_is_set(self, write):
        assert failure(write("- 1\n"), "replicates=3") == "s.yaml:1: expected a mapping, found a list of 1. Correct the value."


def test_options_of_a_replaced_provider_are_inherited_by_its_replay(write):
    text = changed("    kind: live\n", "    kind: live\n    provider: {name: openai, top_p: 0.5}\n")
    study = load_study(write(text))
    assert study.provider(study.stacks[0], study.condition("replay")) == study.provider(study.stacks[0], study.condition("live"))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "kind", "provider", "source", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(value=_JSON, key=st.sampled_from(["study", "benchmark", "stacks", "conditions", "judge", "analysis", "night"]))
def test_no_value_escapes_the_error_report(tmp_path_factory, value, key):
    path = tmp_path_factory.mktemp("s") / "s.yaml"
    data = yaml.safe_load(GOOD) | {key: value}
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    try:
        result = load_study(path)
    except StudyError as error:
        result = error
    assert isinstance(result, Study) or str(path) in str(result)


@settings(max_examples=100, deadline=None)
@given(raw=st.binary(max_size=80) | st.text(alphabet="ab:-{}[]&*!<'\"\n \t#|>?%@`~$0.", max_size=40).map(str.encode))
def test_no_bytes_escape_the_error_report(tmp_path_factory, raw):
    path = tmp_path_factory.mktemp("s") / "s.yaml"
    path.write_bytes(raw)
    with pytest.raises(StudyError):
        load_study(path)
