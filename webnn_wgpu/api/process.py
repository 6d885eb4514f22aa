"""`optimize_process`: the one place where a program lets the package change settings of the whole process.

`have_own_symbols` tells frontends how the process loaded its drivers.
"""

from __future__ import annotations

from ..core.process import ProcessOptions, process_options, set_process_options
from ..runtime.driver_symbols import have_own_symbols

__all__ = ["have_own_symbols", "optimize_process", "process_options"]


def optimize_process(
    *,
    lazy_modules: bool = True,
    header_tables: bool = True,
    deferred_collection: bool = True,
    driver_threads: bool = True,
    without_opengl: bool = True,
    heap_trimming: bool = True,
) -> None:
    """Let the package change settings of the whole process, for quicker starts, quicker runs on llvmpipe and less memory.

    By itself the package changes nothing that other code in the process can see. A program that mainly runs models may call
    this once, before its first context and its first model. Each change takes effect when it is due, and modules and libraries
    that are already loaded do not change. A further call replaces the choices of the one before. The command `webnn-wgpu` calls
    this.

    Args:
        lazy_modules: `sympy` and five modules of `onnx`, `onnx_ir` and `protobuf` are imported when one of their names is first
            used. Gain: 0.1 s of CPU time and 34 MB for the first ONNX model. Price: a finder stands first in `sys.meta_path`
            while `onnx_ir` is imported, and other code finds these modules in `sys.modules` before they are executed.
        header_tables: wgpu's C declarations come from tables instead of cffi's parser. Gain: 0.16 s and 4 MB for the first
            context. Price: `cffi.FFI` is replaced while wgpu's binding is imported, and `wgpu.backends.wgpu_native.ffi` is of
            cffi's compiled kind, which declares nothing further.
        deferred_collection: modules are imported without garbage collection. Gain: 0.1 s for the first ONNX model, 0.01 s for
            the first context. Price: the collector is disabled meanwhile, for all threads, and all objects of the process then
            count as old, as after `gc.freeze` and `gc.unfreeze`.
        driver_threads: Mesa's software driver llvmpipe computes with two threads more than there are processors. Gain: runs of
            some 50 ms and more no longer take 1.2 to 1.4 times as long at times. Price: runs of many small kernels take up to
            15 % longer. The environment variable LP_NUM_THREADS is set during the search for the first adapters, and other code
            that uses llvmpipe computes with as many threads. A value that the user has set stays.
        without_opengl: wgpu does not load OpenGL, on which no kernel can run. Gain: 10 MB for the first context. Price: the
            process has one instance of wgpu, so other code finds no OpenGL adapters either.
        heap_trimming: glibc returns freed memory to the system (`malloc_trim`) after each kernel that llvmpipe compiles, and
            while it compiles. Gain: 7 to 20 MB on two processors at the peak of a first run. Price: the whole heap is locked
            and searched each time, and other code that has freed memory asks the system for it again.

    Example:
        A program that only runs models allows everything:

            optimize_process()

        A program with other users of OpenGL in the process keeps that:

            optimize_process(without_opengl=False)
    """
    options = ProcessOptions(
        lazy_modules=lazy_modules,
        header_tables=header_tables,
        deferred_collection=deferred_collection,
        driver_threads=driver_threads,
        without_opengl=without_opengl,
        heap_trimming=heap_trimming,
    )
    set_process_options(options)
