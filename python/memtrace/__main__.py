"""`python -m memtrace` and the console script `memtrace`: become the program."""
from __future__ import annotations

import os
import sys

from .errors import Error
from .program import find

NOT_FOUND = 127
NOT_RUN = 126


def main() -> int:
    """Replaces this process by the program. Returns only if that fails."""
    try:
        program = find()
    except Error as error:
        print(f"memtrace: {error}", file=sys.stderr)
        return NOT_FOUND
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execv(program, ["memtrace", *sys.argv[1:]])
    except OSError as error:
        print(f"memtrace: cannot run '{program}': {error.strerror}", file=sys.stderr)
    return NOT_RUN


if __name__ == "__main__":
    sys.exit(main())
