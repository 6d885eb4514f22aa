"""`keras.ops`'s functions of numpy's names. Each lies in the module of its kind; the rest runs on the host."""

from __future__ import annotations

from . import host
from .creation import *  # noqa: F403
from .elementwise import *  # noqa: F403
from .movement import *  # noqa: F403
from .products import *  # noqa: F403
from .reductions import *  # noqa: F403

globals().update(host.functions("numpy"))
