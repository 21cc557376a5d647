"""Starts a Python worker: the files beside this one become a package under a private name."""

import importlib
import os
import signal
import sys
import types

PACKAGE = "_interpreter_driver"


def main(data_fd: int, origin: tuple) -> int:  # type: ignore[type-arg]
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # until the driver installs its handler
    package = types.ModuleType(PACKAGE)
    package.__path__ = [os.path.dirname(os.path.abspath(__file__))]
    sys.modules[PACKAGE] = package
    try:
        return int(importlib.import_module(PACKAGE + ".serve").serve(data_fd, origin))
    except BaseException:  # noqa: BLE001 -- the host shows any failure
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.write(2, importlib.import_module("traceback").format_exc().encode())  # sys.stderr may not be ready
        return 1
