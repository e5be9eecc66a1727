from __future__ import annotations

import os
import platform

import msgspec

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
