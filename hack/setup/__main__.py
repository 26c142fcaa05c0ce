"""Entry point: refuse an old Python in one line, then hand over to the command line."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - this is the check that tells users so
    sys.exit(
        "setup: Python 3.11 or newer is needed, this is {}.{}; run it with another one, "
        "for example `make setup PYTHON=python3.12`".format(*sys.version_info[:2])
    )

from hack.setup.cli import main

sys.exit(main(sys.argv[1:]))
