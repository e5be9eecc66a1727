"""The fork servers of a run: started when first needed, one for each program of a compiler that takes turns."""

from __future__ import annotations

from graphnet.evaluate.server import Server, ServerDied, ServerRefused


class Servers:
    """Running servers by compiler, interpreter and number."""

    def __init__(self, preload_s: float) -> None:
        self._preload_s = preload_s
        self._running: dict[tuple[str, str, int], Server] = {}
        self._unusable: dict[tuple[str, str], ServerDied | ServerRefused] = {}

    def get(self, compiler: str, python: str = "", number: int = 0) -> Server:
        """A server that lives, in the environment of `python` if that is given. Raises ServerDied, ServerRefused.

        One that could not be started is not tried again: an import that hangs would hang for each of its jobs.
        """
        place = compiler, python, number
        server = self._running.get(place)
        if server is not None and server.alive:
            return server
        if server is not None:
            self._running.pop(place).close()
        if (compiler, python) in self._unusable:
            raise self._unusable[compiler, python]
        try:
            server = Server.start(compiler, self._preload_s, python)
        except (ServerDied, ServerRefused) as error:
            self._unusable[compiler, python] = error
            raise
        self._running[place] = server
        return server

    def close(self) -> None:
        """End all servers with everything that they started."""
        for server in self._running.values():
            server.close()
        self._running.clear()
