"""TFLite's operators: one function, or one row of a table, for each."""

from . import (
    activations as activations,
)
from . import (
    convolution as convolution,
)
from . import (
    elementwise as elementwise,
)
from . import (
    indexing as indexing,
)
from . import (
    linear as linear,
)
from . import (
    normalization as normalization,
)
from . import (
    pooling as pooling,
)
from . import (
    quantization as quantization,
)
from . import (
    reductions as reductions,
)
from . import (
    resizing as resizing,
)
from . import (
    shaping as shaping,
)
from ._registry import Inline as Inline
from ._registry import Result as Result
from ._registry import TfliteHandler as TfliteHandler
from ._registry import handler as handler
from ._registry import handlers as handlers
