"""The exception tree.

GraphNetError                    everything this package raises on purpose
├── GraphFormatError             a graph file or an in-memory graph breaks the format (names file, JSON path, cause)
├── GraphBindError               a symbolic dimension got an illegal or missing value
├── CaptureError                 a source model could not be captured, or the capture does not equal its source
├── UnsupportedOp                a lowering table or a compiler has no rule for an operator
├── CompilerNotFound             no compiler of that name, or its package is not installed
├── DeviceNotPresent             the asked device is not on this machine
├── ToolNotFound                 a program that is needed (llvm-mca, say) is not installed
├── StoreError                   a results store is unreadable, full or of a newer version
└── UsageError                   a command line or API argument is wrong (says what is legal)
"""

from __future__ import annotations


class GraphNetError(Exception):
    """Base of all errors that GraphNet raises on purpose."""


class GraphFormatError(GraphNetError):
    """A graph breaks the format.

    `where` is a JSON path such as `$.nodes[3].inputs[0]`; `file` is the file it was read from, if any.
    """

    def __init__(self, cause: str, *, where: str = "$", file: str = "") -> None:
        self.cause, self.where, self.file = cause, where, file
        super().__init__(f"{file + ': ' if file else ''}{where}: {cause}")

    def in_file(self, file: str) -> GraphFormatError:
        """The same error, naming the file it came from."""
        return GraphFormatError(self.cause, where=self.where, file=file)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_format_error, (self.cause, self.where, self.file)


def _rebuild_format_error(cause: str, where: str, file: str) -> GraphFormatError:
    return GraphFormatError(cause, where=where, file=file)


class GraphBindError(GraphNetError):
    """A symbolic dimension got an illegal or missing value."""


class CaptureError(GraphNetError):
    """A source model could not be captured, or the captured graph does not equal its source."""


class UnsupportedOp(GraphNetError):
    """No rule for an operator: `torch: no lowering for ai.onnx::Foo (node 'n3')`."""


class CompilerNotFound(GraphNetError):
    """No compiler of that name is known, or the package it needs is not installed."""


class DeviceNotPresent(GraphNetError):
    """The asked device is not on this machine."""


class ToolNotFound(GraphNetError):
    """A program of the system that is needed here is not installed; the message says which package brings it."""


class StoreError(GraphNetError):
    """A results store cannot be read or written."""


class UsageError(GraphNetError):
    """An argument is wrong; the message says what is legal."""
