"""The system calls that reach beyond the files of a view, and the filter that has us asked about each of them."""

from __future__ import annotations

import platform
import struct

# name: number on x86_64, on aarch64
NETWORK = {"socket": (41, 198), "connect": (42, 203), "io_uring_setup": (425, 425)}
SIGNALS = {
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
}
PROCESSES = {"ptrace": (101, 117), "process_vm_writev": (311, 271), "pidfd_getfd": (438, 438)}
MOUNTS = {
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "unshare": (272, 97),
    "setns": (308, 268),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
}
MACHINE = {
    "reboot": (169, 142),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "bpf": (321, 280),
    "add_key": (248, 217),
    "keyctl": (250, 219),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
}
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # the column above, and the kernel's name for it
OTHER_NUMBERS = 0x40000000  # a second set of x86_64's numbers begins here

LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
ASK, ALLOW = 0x7FC00000, 0x7FFF0000
NUMBER_AT, MACHINE_AT = 0, 4  # in what a filter gets to see of a call


def known() -> dict[int, str]:
    """The names of the calls that are asked about, by their numbers on this machine; none where we know no numbers."""
    if platform.machine() not in MACHINES:
        return {}
    column = MACHINES[platform.machine()][0]
    everything = NETWORK | SIGNALS | PROCESSES | MOUNTS | MACHINE
    return {numbers[column]: name for name, numbers in everything.items()}


def program() -> bytes:
    """The filter: other machines' calls (32-bit programs) and the calls above are asked about, the rest is not."""
    numbers = sorted(known())
    ask = len(numbers) + 1  # jumps to the last but one instruction
    lines = [(LOAD, 0, 0, MACHINE_AT), (EQUAL, 1, 0, MACHINES[platform.machine()][1]), (RETURN, 0, 0, ASK)]
    lines += [(LOAD, 0, 0, NUMBER_AT), (AT_LEAST, ask, 0, OTHER_NUMBERS)]
    lines += [(EQUAL, ask - 1 - place, 0, number) for place, number in enumerate(numbers)]
    lines += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, ASK)]
    return b"".join(struct.pack("=HBBI", *line) for line in lines)
