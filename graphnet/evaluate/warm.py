"""The warm compilation of a job: the same again in a new process, with the caches of compiled code that were left."""

from __future__ import annotations

import msgspec

from graphnet.evaluate.plan import Limits
from graphnet.evaluate.protocol import Work
from graphnet.evaluate.server import Server
from graphnet.evaluate.supervise import Outcome, watch

RAN = ("ok", "wrong", "unstable")
"""Verdicts on programs that were compiled and run."""


def compile_again(server: Server, work: Work, cold: Outcome, limits: Limits) -> Outcome:
    """Compile `work` once more and run it once; returns `cold`, the outcome of the first time, with `warm_compile`.

    `work` names the folder of caches that both have. A compiler that keeps a cache by default left it in the first
    compilation, and paid for that. Of one that keeps a cache only when told to, the first compilation has none, and one
    between the two fills it. Where there is no cache, warm differs from cold by nothing but the file cache of the
    operating system. What goes wrong after the first compilation is a note.
    """
    if cold.verdict not in RAN:
        return cold
    again = msgspec.structs.replace(work, compile_only=True)
    warm, wall_s = cold, cold.wall_s
    for _ in range(2 if server.ready.cache == "off by default" else 1):
        if not server.alive:
            return msgspec.structs.replace(cold, notes=(*cold.notes, "no warm compilation: the fork server ended"))
        warm = watch(server, again, limits)
        wall_s += warm.wall_s
        if warm.verdict != "ok":
            note = f"no warm compilation: {warm.verdict} in {warm.stage}: {warm.message}"
            return msgspec.structs.replace(cold, notes=(*cold.notes, note), wall_s=wall_s)
    return msgspec.structs.replace(cold, fields={**cold.fields, "warm_compile": warm.fields["compile"]}, wall_s=wall_s)
