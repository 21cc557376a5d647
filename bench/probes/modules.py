"""How many of our modules are loaded at import and after a request, and how many files a warm request executes."""

import sys
import threading

from common import ARGUMENTS, ready, report


def loaded():
    return sum(name.split(".")[0] == "interpreter" for name in sys.modules)


import interpreter  # noqa: E402

at_import = loaded()
if "api_base" not in ARGUMENTS:
    report(at_import=at_import)
    sys.exit()
assistant = ready()
assistant.auto_run = True
assistant.chat("go", display=False)
in_request = loaded()
package = interpreter.__path__[0]
executed = set()


def note(frame, event, argument):
    executed.add(frame.f_code.co_filename)


threading.setprofile(note)
sys.setprofile(note)
assistant.chat("go", display=False)
sys.setprofile(None)
assistant.computer.terminate()
report(at_import=at_import, in_request=in_request, executed=sum(file.startswith(package) for file in executed))
