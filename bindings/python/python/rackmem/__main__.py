"""`python -m rackmem ...` is the command `rackmem` that came with the wheel."""

import os
import sys

from . import command


def main() -> None:
    path = command()
    os.execv(path, [os.path.basename(path), *sys.argv[1:]])


if __name__ == "__main__":
    main()
