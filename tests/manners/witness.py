"""A process that uses the package, and tells what of it other code in the process could have seen.

    python -m tests.manners.witness library MODEL     the package first, the libraries as it imports them
    python -m tests.manners.witness guest MODEL       in a program that has imported the libraries and looked for adapters
    python -m tests.manners.witness host MODULE...    no package: what importing these modules, and wgpu's adapters, bring

Prints JSON: a guest's `changes` by step, what happened in `passing` and may have been undone since, the process's `state` at
the end, the foreign `modules` that were loaded in their order, those `undeclared` of them, and the `adapters` that wgpu finds.
"""

from __future__ import annotations

import builtins
import decimal
import faulthandler
import gc
import json
import locale
import logging
import os
import random
import re
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from types import ModuleType
from typing import Any

OWN = ("webnn_wgpu", "tests", "__main__", "__mp_main__", "examples")

State = dict[str, Any]


# what is seen at one time -----------------------------------------------------------------------------------------------


def state() -> State:
    """Return what other code can see of the process, as texts and numbers."""
    found: State = {
        "environment": dict(os.environ),
        "import hooks": [repr(finder) for finder in sys.meta_path],
        "path hooks": [repr(hook) for hook in sys.path_hooks],
        "import path": list(sys.path),
        "garbage collector": [gc.isenabled(), gc.get_threshold(), gc.get_freeze_count(), gc.get_debug(), len(gc.callbacks)],
        "warning filters": [repr(each) for each in warnings.filters],
        "warnings shown by": repr(warnings.showwarning),
        "signals": {str(number): repr(signal.getsignal(number)) for number in sorted(signal.valid_signals())},
        "hooks": [repr(hook) for hook in (sys.excepthook, sys.unraisablehook, sys.displayhook, threading.excepthook)],
        "tracing": [repr(each) for each in (sys.gettrace(), sys.getprofile(), threading.gettrace(), threading.getprofile())],
        "streams": [id(each) for each in (sys.stdin, sys.stdout, sys.stderr)],
        "logging": _logging(),
        "interpreter": [sys.getrecursionlimit(), sys.getswitchinterval(), sys.getdlopenflags(), threading.stack_size()],
        "builtins": sorted(vars(builtins)),
        "folder": os.getcwd(),
        "umask": _umask(),
        "locale": locale.setlocale(locale.LC_ALL),
        "time-outs of sockets": socket.getdefaulttimeout(),
        "faults": faulthandler.is_enabled(),
        "random numbers": hash(random.getstate()),
        "decimals": repr(decimal.getcontext()),
        "processors": sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [],
        "priority": os.getpriority(os.PRIO_PROCESS, 0) if hasattr(os, "getpriority") else 0,
        "modules that are not loaded yet": sorted(name for name, m in sys.modules.items() if type(m).__name__ == "_LazyModule"),
    }
    numpy, cffi = sys.modules.get("numpy"), sys.modules.get("cffi")
    if numpy is not None:
        found["numpy"] = [numpy.geterr(), repr(numpy.geterrcall()), repr(numpy.get_printoptions())]
        found["numpy's random numbers"] = repr(numpy.random.get_state())
    if cffi is not None:
        found["cffi"] = _name(cffi.FFI)
    native = sys.modules.get("wgpu.backends.wgpu_native")
    if native is not None:
        parser = getattr(native.ffi, "_parser", None)
        found["wgpu's cffi object"] = [
            _name(type(native.ffi)),
            sorted(vars(native.ffi)),
            sorted(vars(parser)) if parser else [],
        ]
    return found


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _logging() -> State:
    """Return how logging is configured: the loggers that differ from what `getLogger` makes."""
    root = logging.getLogger()
    loggers = {"": root} | {n: each for n, each in root.manager.loggerDict.items() if isinstance(each, logging.Logger)}
    settings = {
        name: [each.level, [repr(h) for h in each.handlers], [repr(f) for f in each.filters], each.propagate, each.disabled]
        for name, each in sorted(loggers.items())
    }
    return {
        "manager": [root.manager.disable, logging.raiseExceptions, repr(logging.getLoggerClass()), logging.getLevelName(5)],
        "loggers": {name: found for name, found in settings.items() if found != [logging.NOTSET, [], [], True, False]},
    }


def is_own(module: str) -> bool:
    """Whether a module is the package's, or a test's."""
    return module.partition(".")[0] in OWN


def adapters() -> list[list[str]]:
    """Return the adapters that other code finds."""
    import wgpu

    found = wgpu.gpu.enumerate_adapters_sync()
    return sorted([str(each.info[key]) for key in ("backend_type", "adapter_type", "device", "vendor")] for each in found)


# what is replaced -------------------------------------------------------------------------------------------------------


def attributes() -> dict[tuple[str, str, str], Any]:
    """Return the functions and classes of all foreign modules, and the functions of these classes, by where they stand."""
    found: dict[tuple[str, str, str], Any] = {}
    for name, module in list(sys.modules.items()):
        if is_own(name) or type(module) is not ModuleType:
            continue
        for attribute, value in list(vars(module).items()):
            if isinstance(value, type) and value.__module__ == name:
                found |= {(name, attribute, each): member for each, member in list(vars(value).items()) if callable(member)}
            if callable(value):
                found[name, attribute, ""] = value
    return found


def replaced(before: dict[tuple[str, str, str], Any]) -> list[str]:
    """Return what of it is gone, or something else now."""
    after = attributes()
    return sorted(".".join(filter(None, key)) for key, value in before.items() if after.get(key) is not value)


# what passes ------------------------------------------------------------------------------------------------------------

NATIVE = re.compile(r"malloc_trim|mallopt|setenv|putenv|unsetenv|signal|sigaction|sched_set|setpriority|setrlimit|mlockall")
"""C functions that change a process for all of its code."""


class Passing:
    """Notes what is done to the process for a while, by the events that the interpreter tells auditors, and by calls of gc."""

    def __init__(self) -> None:
        self.seen: dict[str, None] = {}
        self.on = False
        self._meta_path, self._cffi = list(sys.meta_path), None
        for name in ("disable", "enable", "freeze", "unfreeze", "set_threshold", "set_debug"):
            setattr(gc, name, self._noted(f"gc.{name}", getattr(gc, name)))
        sys.addaudithook(self._audit)

    def _noted(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any) -> Any:
            caller = sys._getframe(1).f_globals.get("__name__", "")
            if self.on and is_own(caller) and not caller.startswith("tests"):
                self.seen[f"{name} is called by {caller}"] = None
            return function(*arguments)

        return called

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.on:
            return
        if event == "import":
            self._imported(str(arguments[0]))
        elif event in ("os.putenv", "os.unsetenv"):
            name = arguments[0]
            self.seen[f"{event} {name.decode() if isinstance(name, bytes) else name}"] = None
        elif event == "ctypes.dlsym" and NATIVE.search(str(arguments[1])):
            self.seen[f"the C function {arguments[1]} is looked up"] = None
        elif event in ("os.chdir", "resource.setrlimit", "subprocess.Popen", "os.fork", "os.posix_spawn", "socket.connect"):
            self.seen[event] = None

    def _imported(self, module: str) -> None:
        """An import passes through what others have put in its way."""
        if sys.meta_path != self._meta_path:
            strangers = [repr(finder) for finder in sys.meta_path if finder not in self._meta_path]
            self.seen[f"imports pass through {', '.join(strangers)}"] = None
        if not gc.isenabled():
            self.seen["modules are imported without garbage collection"] = None
        cffi = sys.modules.get("cffi")
        made = getattr(cffi, "FFI", None)
        if made is not None and made.__module__ != "cffi.api":
            self.seen[f"cffi.FFI is {_name(made)}"] = None


# what is used -----------------------------------------------------------------------------------------------------------


def steps(model: str) -> list[tuple[str, Callable[[], Any]]]:
    """Return what a program does with the package, by name; each step keeps what it makes."""
    kept: dict[str, Any] = {}

    def load_package() -> None:
        kept["wn"] = import_module("webnn_wgpu")

    def context() -> None:
        kept["context"] = kept["wn"].ml.create_context()

    def graph() -> None:
        builder = kept["wn"].MLGraphBuilder(kept["context"])
        x = builder.input("x", {"dataType": "float32", "shape": [2, 3]})
        y = builder.softmax(builder.matmul(x, builder.transpose(x)), 1)
        kept["graph"] = builder.build({"y": builder.reduce_sum(builder.tanh(y), axes=[0])})

    def run() -> None:
        kept["context"].compute(kept["graph"], {"x": [[1, 2, 3], [4, 5, 6]]})

    def load() -> None:
        import numpy as np

        kept["model"] = kept["wn"].load(model)
        kept["model"].run({"x": np.ones((2, 4), np.float32)})

    def end() -> None:
        for name in ("model", "graph", "context"):
            kept[name].destroy()

    return [("import", load_package), ("context", context), ("graph", graph), ("run", run), ("load", load), ("end", end)]


def dependencies() -> set[str]:
    """Return the top-level modules of the libraries that the package declares, and of those that these declare."""
    providers: dict[str, set[str]] = {}
    for module, names in packages_distributions().items():
        for name in names:
            providers.setdefault(_normal(name), set()).add(module)
    known, waiting = set[str](), ["webnn-wgpu"]
    while waiting:
        name = waiting.pop()
        if name in known:
            continue
        known.add(name)
        with suppress(PackageNotFoundError):
            for requirement in distribution(name).requires or ():
                # Of the package's own extras all count, of others' none.
                if name == "webnn-wgpu" or "extra ==" not in requirement:
                    waiting.append(_normal(re.split(r"[^\w.-]", requirement, maxsplit=1)[0]))
    return {module for name in known for module in providers.get(name, ())}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def foreign(before: set[str]) -> list[str]:
    """Return the modules of others that were loaded since."""
    # Those without a specification extension modules make as they are imported.
    return [
        name
        for name, module in list(sys.modules.items())
        # As `getattr` would load a module whose loading was put off.
        if name not in before and not is_own(name) and object.__getattribute__(module, "__dict__").get("__spec__") is not None
    ]


def undeclared(modules: list[str]) -> list[str]:
    """Return those that belong neither to Python nor to a declared dependency."""
    allowed = dependencies() | set(sys.stdlib_module_names)
    return sorted({name.partition(".")[0] for name in modules} - allowed)


def library(model: str) -> State:
    """Use the package before anything else."""
    before = set(sys.modules)
    passing = Passing()
    passing.on = True
    for _, step in steps(model):
        step()
    passing.on = False
    modules = foreign(before)
    found = adapters()
    return {
        "passing": list(passing.seen),
        "modules": modules,
        "undeclared": undeclared(modules),
        "state": state(),
        "adapters": found,
    }


def guest(model: str) -> State:
    """Use the package in a program that has already imported the libraries, and looked for adapters."""
    for name in ("numpy", "wgpu", "wgpu.backends.wgpu_native", "jinja2", "platformdirs", "ml_dtypes", "onnx", "onnx_ir"):
        import_module(name)
    first = adapters()
    passing = Passing()
    modules, before, functions = set(sys.modules), state(), attributes()
    changes: State = {}
    for name, step in steps(model):
        passing.on = True
        step()
        passing.on = False
        after = state()
        changes[name] = {key: [before.get(key), value] for key, value in after.items() if before.get(key) != value}
        if gone := replaced(functions):
            changes[name]["replaced"] = gone
    return {
        "changes": {name: found for name, found in changes.items() if found},
        "passing": list(passing.seen),
        "undeclared": undeclared(foreign(modules)),
        "adapters": [first, adapters()],
    }


def host(modules: list[str]) -> State:
    """Import modules without the package, and look for adapters."""
    passing = Passing()
    passing.on = True
    for name in modules:
        with suppress(ImportError):
            import_module(name)
    passing.on = False
    found = adapters()
    return {"passing": list(passing.seen), "state": state(), "adapters": found}


if __name__ == "__main__":
    role, *arguments = sys.argv[1:]
    if role == "host":
        print(json.dumps(host(arguments), default=str))
    else:
        print(json.dumps({"library": library, "guest": guest}[role](*arguments), default=str))
