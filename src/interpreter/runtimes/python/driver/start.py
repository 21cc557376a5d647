"""Starts a Python worker: the files beside this one become a package under a private name.

As a program, it starts another one in a view: start.py SOCKET PROGRAM [ARGUMENT...]
"""

import importlib
import os
import signal
import sys
import types

PACKAGE = "_interpreter_driver"
package = types.ModuleType(PACKAGE)
package.__path__ = [os.path.dirname(os.path.abspath(__file__))]
sys.modules[PACKAGE] = package


def main(data_fd: int, origin: tuple) -> int:  # type: ignore[type-arg]
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # until the driver installs its handler
    try:
        return int(importlib.import_module(PACKAGE + ".serve").serve(data_fd, origin))
    except BaseException:  # noqa: BLE001 -- the host shows any failure
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.write(2, importlib.import_module("traceback").format_exc().encode())  # sys.stderr may not be ready
        return 1


if __name__ == "__main__":
    import _socket

    line = _socket.socket(_socket.AF_UNIX)
    line.connect(sys.argv[1])
    if importlib.import_module(PACKAGE + ".entering").enter_view(line.detach(), {0, 1, 2}) is None:
        os._exit(1)
    os.execvp(sys.argv[2], sys.argv[2:])
