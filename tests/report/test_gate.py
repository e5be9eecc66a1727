"""The forms of the regression gate's report."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
import xmlschema
from rich.console import Console

from graphnet.analyze.live import settle
from graphnet.analyze.regression import Gate, gate
from graphnet.report.gate_json import gate_json
from graphnet.report.gate_junit import gate_junit
from graphnet.report.gate_markdown import escaped, gate_markdown
from graphnet.report.gate_text import gate_report
from tests.analyze.gate_records import machine, of, record
from tests.analyze.test_live import turns

SCHEMA = xmlschema.XMLSchema(Path(__file__).parent / "data" / "junit.xsd")
EVIL = "a|b\n`<script>` @everyone [x](http://x) *_~ \x00\x1b[31m\u202e\ufffe\ud800"


def everything() -> Gate:
    names = ("slow", "same", "gone", "crash", "wrong")
    base = of(*(record(name, 4) for name in names), record("broken"), record("slow", 4, compiler="tvm"))
    now = of(
        record("slow", 5, seed=1), record("same", 4, seed=1), record("crash", message="killed"),
        record("wrong", verdict="wrong"), record("broken"), record("new", 1), record("slow", 4, compiler="tvm"),
    )  # fmt: skip
    return gate(base, now, 0.95)


def refused() -> Gate:
    return gate(of(record(ms=4)), of(record(ms=4, environment="m2"), environments=[machine("m2", "Xeon")]), 0.95)


def evil() -> Gate:
    return gate(of(record(ms=4, graph=EVIL, compiler=EVIL)), of(record(ms=5, graph=EVIL, compiler=EVIL)), 0.95)


def nothing() -> Gate:
    return gate(of(), of(), 0.95)


def text(found: Gate) -> str:
    console = Console(width=200)
    with console.capture() as captured:
        console.print(gate_report(found))
    return captured.get()


def test_junit_counts_and_cases() -> None:
    root = ElementTree.fromstring(gate_junit(everything()))
    assert root.attrib == {"name": "graphnet gate", "tests": "8", "failures": "4", "errors": "0"}
    jax, tvm = root.findall("testsuite")
    assert (jax.get("name"), jax.get("tests"), jax.get("failures"), jax.get("skipped")) == ("jax", "7", "4", "2")
    assert (tvm.get("name"), tvm.get("tests"), tvm.get("failures")) == ("tvm", "1", "0")
    failures = {case.get("name"): case.find("failure") for case in jax.findall("testcase")}
    types = {name: failure.get("type") for name, failure in failures.items() if failure is not None}
    assert types == {
        "slow": "regressed",
        "gone": "missing",
        "crash": "newly failing",
        "wrong": "newly incorrect",
    }
    assert failures["crash"] is not None
    assert "crashed in run: killed" in str(failures["crash"].get("message"))


@pytest.mark.parametrize("make", [everything, refused, evil, nothing])
def test_junit_validates_against_the_schema(make: object) -> None:
    assert callable(make)
    SCHEMA.validate(gate_junit(make()).decode())


def test_junit_schema_refuses_what_is_no_report() -> None:
    assert not SCHEMA.is_valid("<testsuites><testcase name='a'/></testsuites>")


@pytest.mark.parametrize("make", [refused, nothing])
def test_junit_of_a_gate_that_measured_nothing_is_an_error(make: object) -> None:
    assert callable(make)
    root = ElementTree.fromstring(gate_junit(make()))
    assert root.get("errors") == "1"
    error = root.find("testsuite/testcase/error")
    assert error is not None
    assert "could not measure" in str(error.get("message"))


def test_markdown_has_the_worst_first() -> None:
    lines = gate_markdown(everything()).splitlines()
    assert lines[0].startswith("## ❌ Regression gate: regression")
    rows = [line.split("|") for line in lines if line.startswith("| ")][2:]
    statuses = [row[1].strip() for row in rows]
    assert statuses[:4] == ["**regressed**", "**newly incorrect**", "**newly failing**", "**missing**"]
    assert statuses[-1] == "passed"
    assert rows[0][2].strip() == "<code>slow</code>"
    assert any(line.startswith("* geometric mean of the ratios of all compilers") for line in lines)


def test_markdown_of_strangers_names_is_inert() -> None:
    page = gate_markdown(evil())
    (row,) = [line for line in page.splitlines() if line.startswith("| **")]
    assert row.count("|") == 11, "ten columns"
    for sign in ("<script", "`", "@everyone", "http:", "](", "\x1b", "\u202e", "\x00"):
        assert sign not in page
    assert escaped("a|b*") == "a&#124;b&#42;"
    assert "www." not in escaped("www.example.org")
    page.encode()


def test_markdown_says_how_many_rows_it_leaves_out() -> None:
    many = of(*(record(f"g{number}", 4) for number in range(230)))
    page = gate_markdown(gate(many, many, 0.95))
    assert "and 30 more" in page
    assert len(page) < 1 << 20


def test_json_is_what_the_gate_found() -> None:
    found = everything()
    content = json.loads(gate_json(found))
    assert content["format"] == "graphnet-gate/1"
    assert (content["outcome"], content["meaning"], content["compared"]) == (1, "regression", 5)
    first = content["rows"][0]
    assert (first["graph"], first["compiler"], first["status"], first["failed"]) == ("slow", "jax", "regressed", True)
    assert first["change"]["ratio"] == pytest.approx(first["baseline_s"] / first["current_s"])
    assert first["live"] is None
    names = [mean["compiler"] for mean in content["means"]]
    assert names == ["", "jax", "tvm"]
    assert content["means"][0]["count"] == 3


def test_text_says_what_is_unlike_and_what_to_do() -> None:
    told = text(refused())
    assert "could not measure: the environments are unlike" in told
    assert "unlike CPU: EPYC in the baseline, Xeon now" in told
    assert "--allow-environment-change" in told


def test_text_shows_a_second_measurement_where_there_was_one() -> None:
    found = gate(of(record(ms=4)), of(record(ms=5)), 0.95)
    assert "taking turns" not in text(found).replace("both builds taking turns", "")
    settled = settle(found, lambda result, budget: turns(0.8), 10)
    assert "0.80" in text(settled)
    assert json.loads(gate_json(settled))["rows"][0]["live"]["rounds"] == 80
    assert "taking turns 0.8" in gate_junit(settled).decode()


def test_a_gate_is_compact_to_say_when_all_is_well() -> None:
    same = of(record(ms=4))
    assert text(gate(same, same, 0.95)).splitlines()[0] == "passed: 1 passed; 1 compared"
    assert msgspec.json.decode(gate_json(gate(same, same, 0.95)))["outcome"] == 0
