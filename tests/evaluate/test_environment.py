from __future__ import annotations

import os
import platform

import msgspec
import pytest

from graphnet.evaluate import environment
from graphnet.evaluate.records import Environment


def test_facts_of_this_machine() -> None:
    found = environment.detect()
    assert found.cpu_model
    assert 1 <= found.cpu_count <= (os.cpu_count() or 1)
    assert 0 < found.memory_bytes <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert found.python == platform.python_version()
    assert found.os.startswith("Linux ")
    if platform.machine() == "x86_64":
        assert "sse4_2" in found.isa
    assert environment.detect() == found
    assert set(found.facts) <= set(environment.FACTS)
    assert found.facts["address_randomization"] in ("off", "without the heap", "on")


def test_key_changes_with_what_makes_figures_incomparable() -> None:
    found = environment.detect()
    assert found.key == environment.digest(found)
    assert len(found.key) == 16
    replace = msgspec.structs.replace
    changed: list[Environment] = [
        replace(found, cpu_model="other"),
        replace(found, cpu_count=found.cpu_count + 1),
        replace(found, memory_bytes=found.memory_bytes * 2),
        replace(found, isa=(*found.isa, "new")),
        replace(found, governor="powersave!"),
        replace(found, python="4.0"),
    ]
    assert len({environment.digest(other) for other in changed} | {found.key}) == 7
    assert environment.digest(replace(found, memory_bytes=found.memory_bytes + 1000)) == found.key


def test_key_changes_with_those_facts_that_set_a_level_of_their_own() -> None:
    facts = {"turbo": "on", "smt": "on", "huge_pages": "madvise", "address_randomization": "on"}
    found = msgspec.structs.replace(environment.detect(), facts=facts)

    def key(**changed: str) -> str:
        return environment.digest(msgspec.structs.replace(found, facts={**facts, **changed}))

    assert len({key(), key(turbo="off"), key(huge_pages="never")}) == 3
    assert key() == key(smt="off") == key(address_randomization="off")


@pytest.mark.parametrize(
    ("files", "facts"),
    [
        ({}, {}),
        (
            {"cpu/cpufreq/boost": "1", "cpu/smt/active": "0", "thp": "always [madvise] never", "aslr": "2"},
            {"turbo": "on", "smt": "off", "huge_pages": "madvise", "address_randomization": "on"},
        ),
        ({"cpu/intel_pstate/no_turbo": "1"}, {"turbo": "off"}),
        ({"cpu/cpufreq/boost": "0", "cpu/intel_pstate/no_turbo": "0"}, {"turbo": "off"}),
        ({"aslr": "7"}, {"address_randomization": "7"}),
    ],
)
def test_facts_as_the_kernel_tells_them(
    monkeypatch: pytest.MonkeyPatch, files: dict[str, str], facts: dict[str, str]
) -> None:
    short = {
        "thp": "/sys/kernel/mm/transparent_hugepage/enabled", "aslr": "/proc/sys/kernel/randomize_va_space"
    }  # fmt: skip
    told = {short.get(name, f"/sys/devices/system/{name}"): text for name, text in files.items()}
    monkeypatch.setattr(environment, "_read", lambda path: told.get(path, ""))
    assert environment._facts() == facts
