"""Programs whose arguments tell what they do."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """What happens to the operands, and which options matter."""

    does: str
    """read, list (names only), write, delete, copy, move, kill, send, get, system; empty: nothing."""
    with_value: str = ""
    """Options that take the next word."""
    skip: int = 0
    """So many operands come first that are no files."""
    instead: str = ""
    """Options in whose presence nothing is skipped."""
    writing: str = ""
    """Options whose value is a file that is written."""
    reading: str = ""


BUILTINS = frozenset(
    ": . [ [[ alias bg bind break builtin caller cd command compgen complete continue declare dirs disown "
    "echo enable eval exec exit export false fc fg getopts hash help history jobs kill let local logout "
    "mapfile popd printf pushd pwd read readarray readonly return set shift shopt source suspend test times "
    "trap true type typeset ulimit umask unalias unset wait time print setopt unsetopt".split()
)

# They print, and touch nothing.
_QUIET = (
    ": [ [[ echo print printf pwd true false exit return break continue shift set shopt setopt unsetopt "
    "test type hash help jobs wait times umask ulimit unset unalias export declare local readonly typeset "
    "let read mapfile readarray getopts dirs popd bg fg disown trap logout history compgen complete date "
    "whoami id groups uname hostname arch nproc uptime free ps top htop pgrep pidof lsof vmstat iostat who "
    "w last basename dirname seq expr bc dc factor sleep yes which whereis tty stty clear tput reset locale "
    "getconf lscpu lsblk lsusb lspci sw_vers cal tr rev man info apropos whatis ss netstat findmnt "
    "mountpoint"
)
_READING = (
    "cat tac nl wc file cksum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum "
    "shasum md5 cmp diff diff3 sdiff comm join paste fold fmt pr expand unexpand column strings xxd od hexdump "
    "less more most bat zcat bzcat xzcat zless zgrep nm ldd objdump readelf size pdftotext exiftool "
    "identify ffprobe mediainfo shellcheck xmllint cloc tokei look"
)
_LISTING = "ls dir vdir stat du df tree exa eza lsattr getfacl namei readlink realpath ll"
_SYSTEM = (
    "mount umount swapon swapoff losetup cryptsetup pvcreate vgcreate lvcreate lvremove vgremove mdadm "
    "zpool zfs cfdisk mkfs mkswap fsck tune2fs resize2fs wipefs blkdiscard hdparm badblocks modprobe insmod "
    "rmmod sysctl iptables ip6tables nft ufw firewall-cmd useradd userdel usermod groupadd groupdel adduser "
    "deluser passwd chpasswd chsh visudo crontab at batch update-grub grub-install efibootmgr "
    "dpkg-reconfigure update-alternatives setenforce hostnamectl timedatectl localectl loginctl nvram "
    "csrutil diskutil launchctl defaults networksetup scutil spctl chattr setfacl setcap newfs format"
)
_KILLING = "kill pkill killall xkill skill slay shutdown reboot halt poweroff init telinit"
_ASKING = "ping ping6 traceroute tracepath mtr dig nslookup host whois"

PLAIN: dict[str, Row] = {
    **dict.fromkeys(_QUIET.split(), Row("")),
    **dict.fromkeys(_READING.split(), Row("read")),
    **dict.fromkeys(_LISTING.split(), Row("list")),
    **dict.fromkeys(_SYSTEM.split(), Row("system")),
    **dict.fromkeys(_KILLING.split(), Row("kill", "-s --signal -u")),
    **dict.fromkeys(_ASKING.split(), Row("get", "-c -i -W -t -p -s -m")),
    "head": Row("read", "-n -c --lines --bytes"),
    "tail": Row("read", "-n -c --lines --bytes --pid"),
    "cut": Row("read", "-d -f -c -b --delimiter --fields"),
    "uniq": Row("read", "-f -s -w"),
    "sort": Row("read", "-k -t -S -T -o --output", writing="-o --output"),
    "shuf": Row("read", "-n -o --output", writing="-o --output"),
    "jq": Row("read", "--arg --argjson --indent", 1, "-f --from-file"),
    "yq": Row("read", "", 1),
    "grep": Row(
        "read", "-e -f -m -A -B -C --include --exclude --exclude-dir", 1, "-e -f --regexp --file", reading="-f"
    ),
    "egrep": Row("read", "-e -f -m -A -B -C", 1, "-e -f"),
    "fgrep": Row("read", "-e -f -m -A -B -C", 1, "-e -f"),
    "rg": Row("read", "-e -f -g -t -T -m -A -B -C --glob --type", 1, "-e -f --files"),
    "ag": Row("read", "-A -B -C -G", 1),
    "touch": Row("write", "-d -r -t --date --reference"),
    "mkdir": Row("write", "-m --mode"),
    "mkfifo": Row("write", "-m"),
    "mknod": Row("write"),
    "mktemp": Row("write", "-p --tmpdir"),
    "tee": Row("write"),
    "truncate": Row("write", "-s -r --size"),
    "fallocate": Row("write", "-l -o"),
    "chmod": Row("write", "--reference", 1),
    "chown": Row("write", "--reference", 1),
    "chgrp": Row("write", "--reference", 1),
    "split": Row("read", "-l -b -n -a"),
    "iconv": Row("read", "-f -t -o", writing="-o --output"),
    "rm": Row("delete"),
    "rmdir": Row("delete"),
    "unlink": Row("delete"),
    "shred": Row("delete", "-n -s"),
    "trash": Row("delete"),
    "trash-put": Row("delete"),
    "srm": Row("delete"),
    "cp": Row("copy", "-t --target-directory -S"),
    "install": Row("copy", "-m -o -g -t --mode --owner --group"),
    "ln": Row("copy", "-t -S"),
    "mv": Row("move", "-t --target-directory -S"),
    "rename": Row("move", "", 1),
    "gzip": Row("write"),
    "gunzip": Row("write"),
    "bzip2": Row("write"),
    "bunzip2": Row("write"),
    "xz": Row("write"),
    "unxz": Row("write"),
    "zstd": Row("write", "-o", writing="-o"),
    "convert": Row("copy"),
    "magick": Row("copy"),
    "dos2unix": Row("write"),
    "unix2dos": Row("write"),
    "pandoc": Row("read", "-o -f -t --output", writing="-o --output"),
    "base64": Row("read", "-w -i -o", writing="-o"),
    "open": Row("read"),
    "xdg-open": Row("read"),
}

# With these options the operands are changed where they are.
IN_PLACE = {"yq": "-i --inplace", "uniq": "", "split": "--filter"}

KNOWN = frozenset(PLAIN) - frozenset("trash open xdg-open rename convert magick pandoc".split())
