"""Where a Python worker begins: the files beside this one become a package, under a private name."""

import importlib
import os
import signal
import sys
import types

PACKAGE = "_interpreter_driver"


def main(data_fd: int, origin: tuple) -> int:  # type: ignore[type-arg]
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # until the driver's own handler is there
    package = types.ModuleType(PACKAGE)
    package.__path__ = [os.path.dirname(os.path.abspath(__file__))]
    sys.modules[PACKAGE] = package
    try:
        return int(importlib.import_module(PACKAGE + ".serve").serve(data_fd, origin))
    except BaseException:  # noqa: BLE001 -- whatever it is, the host should hear of it
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.write(2, importlib.import_module("traceback").format_exc().encode())  # sys.stderr may be half made
        return 1
