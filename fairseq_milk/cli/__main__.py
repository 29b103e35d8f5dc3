"""`python -m fairseq_milk.cli`: the command `fairseq-milk`."""

import sys

from . import main

sys.exit(main())
