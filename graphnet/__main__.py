"""`python -m graphnet` is the `graphnet` command."""

from __future__ import annotations

from graphnet.cli import main

if __name__ == "__main__":
    main()
