"""The browser of a client that signs in: `python browser.py ADDRESS`.

It logs in, presses *Allow*, and goes where the page leads, all by the forms.
"""

from __future__ import annotations

import sys

from tests.clients.people import ByForms

if __name__ == "__main__":
    ByForms().lets_in(sys.argv[1])
