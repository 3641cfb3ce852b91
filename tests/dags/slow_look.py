"""A look that never ends by itself."""

import time

time.sleep(600)
