"""What is here: for each compiler its versions and, asked in its own process, its devices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from graphnet import compilers
from graphnet.compilers import Target
from graphnet.errors import GraphNetError
from graphnet.evaluate.plan import Limits
from graphnet.evaluate.protocol import Work
from graphnet.evaluate.server import Server, ServerDied, ServerRefused
from graphnet.evaluate.supervise import watch

LIMITS = Limits(load_s=120.0)


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """A compiler as it is installed here."""

    compiler: str
    variants: tuple[str, ...] = ()
    versions: Mapping[str, str] = {}
    devices: Mapping[str, str] = {}
    """By device: `""` if it is here, else why not."""
    problem: str = ""
    """Why the compiler cannot be loaded at all."""


def probe(names: Sequence[str]) -> Iterator[Probe]:
    """Each compiler is loaded in a process of its own and configured for each of its devices."""
    for name in names:
        variants: tuple[str, ...] = ()
        try:
            variants = tuple(compilers.variants(name))
            server = Server.start(name, LIMITS.preload_s)
        except (GraphNetError, ServerDied, ServerRefused) as error:
            yield Probe(compiler=name, variants=variants, problem=str(error))
            continue
        try:
            devices = {device: _configure(server, device) for device in server.ready.devices}
        finally:
            server.close()
        yield Probe(compiler=name, variants=variants, versions=server.ready.versions, devices=devices)


def _configure(server: Server, device: str) -> str:
    outcome = watch(
        server, Work(graph=b"", target=Target(device=device), budget_s=0.0, tolerance=0, probe=True), LIMITS
    )
    return "" if outcome.verdict == "ok" else outcome.message
