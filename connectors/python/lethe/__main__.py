"""The program lethe, which the wheel brings: python -m lethe demo."""

import os
import sys

from lethe._library import PROGRAM


def main() -> None:
    os.execv(PROGRAM, ["lethe", *sys.argv[1:]])


if __name__ == "__main__":
    main()
