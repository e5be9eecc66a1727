"""What is here, asked of the compilers themselves."""

from __future__ import annotations

import pytest

from graphnet.evaluate.probe import probe


@pytest.mark.usefixtures("own_cache")
def test_devices_are_asked_in_the_compilers_process() -> None:
    absent, numpy, ort = probe(["faulty:CannotLoad", "faulty:TwoDevices", "onnxruntime"])
    assert absent.problem
    assert not absent.devices
    assert numpy.devices == {"cpu": "", "cuda": "no such device"}
    assert set(numpy.versions) == {"numpy"}
    assert ort.devices["cpu"] == ""
    assert "pip install onnxruntime-gpu" in ort.devices["cuda"]
    assert ort.variants == ("disable", "basic", "extended")
