"""Megabytes in memory after some code."""

import resource

from common import ARGUMENTS, report

exec(ARGUMENTS["code"])
try:
    with open("/proc/self/status") as status:
        kilobytes = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
except OSError:  # not Linux
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
report(megabytes=kilobytes / 1024)
