"""`mwjax` and `python -m mwjax`."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    try:
        from mwjax import cli

        return cli.main(arguments)
    except KeyboardInterrupt:
        print("mwjax: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
