"""`mwjax` and `python -m mwjax`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line (that of the process by default) and return its exit status."""
    from mwjax import cli

    status = cli.main(arguments)
    if status == cli.INTERRUPTED and arguments is None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)  # all is tidied up; an ordinary exit would wait for, or trip over, what still computes
    return status


if __name__ == "__main__":
    sys.exit(main())
