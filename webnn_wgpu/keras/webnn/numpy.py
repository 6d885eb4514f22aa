"""`keras.ops`'s functions of numpy's names. Each lies in the module of its kind. The rest runs on the host."""

from __future__ import annotations

from . import host
from .creation import *
from .elementwise import *
from .movement import *
from .products import *
from .reductions import *

globals().update(host.functions("numpy"))
