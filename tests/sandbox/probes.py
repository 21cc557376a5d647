"""Attempts to escape from a sandbox, in three languages. A block that escapes prints ESCAPED and how.

DOCUMENTED lists known escapes, which docs/security.md describes. To run the probes as another user, use
`python probes.py FACTS`; its argument and its output are JSON.
"""

from __future__ import annotations

import json
import sys
import textwrap
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Facts:
    """The targets of the probes."""

    workspace: str
    canary: str  # a file outside, which must not change
    key: str  # a file in a home, which must not be read
    port: int  # where a server of ours listens on this machine
    abstract: str  # the name of an abstract socket of ours
    socket: str  # a socket file of ours outside
    sockets: dict[str, str]  # more of them, by how they were created
    datagrams: str  # a datagram socket outside
    pipe: str  # a named pipe outside
    state: str  # our state folder
    host_pid: int  # a process outside
    secret: str = "canary-secret-2c7e9a4f1b"
    driver: str = ""  # one of our files that runs inside
    memory: int = 512
    processes: int = 150
    file_size: int = 16


PYTHON = {
    "write outside": "open(CANARY, 'w').write('x'); got('wrote')",
    "append outside": "open(CANARY, 'a').write('x'); got('wrote')",
    "delete outside": "os.unlink(CANARY); got('deleted')",
    "rename outside": "os.rename(CANARY, CANARY + '2'); got('renamed')",
    "chmod outside": "os.chmod(CANARY, 0o777); got('changed')",
    "through a symbolic link": "os.symlink(CANARY, WORK + '/link'); open(WORK + '/link', 'w').write('x'); got('wrote')",
    "through a hard link": "os.link(CANARY, WORK + '/hard'); open(WORK + '/hard', 'w').write('x'); got('wrote')",
    "a hard link to the system": "os.link('/etc/passwd', WORK + '/passwd'); got('linked')",
    "through a descriptor": "fd = os.open('/etc/passwd', os.O_RDONLY); open('/proc/self/fd/%d' % fd, 'a'); got('opened')",
    "through the root of a process": """
        for pid in os.listdir('/proc'):
            if pid.isdigit():
                for root in ('/proc/%s/root' % pid, '/proc/%s/cwd/../../../../..' % pid):
                    tried(lambda: open(root + CANARY, 'w').write('x') and got('wrote by ' + root))
    """,
    "read a key": "SECRET in open(KEY).read() and got('read')",
    "list the folder of a key": "'id_canary' in os.listdir(os.path.dirname(KEY)) and got('listed')",
    "read shadow": "open('/etc/shadow').read(1) and got('read')",
    "see host processes": "os.path.exists('/proc/%d/environ' % HOST) and got('seen')",
    "signal a host process": "os.kill(HOST, 0); got('signalled')",
    "trace a host process": "libc.ptrace(16, HOST, 0, 0) == 0 and got('traced')",
    "trace the first process": "libc.ptrace(16, 1, 0, 0) == 0 and got('traced')",
    "descriptors of the first process": """
        first = os.pidfd_open(1)
        for number in range(64):
            libc.syscall(438, first, number, 0) >= 0 and got('taken')
    """,
    "memory of the first process": "open('/proc/1/mem', 'r+b'); got('opened')",
    "memory of its threads": "open('/proc/1/task/1/mem', 'r+b'); got('opened')",
    "limits of the first process": """
        import resource
        resource.prlimit(1, resource.RLIMIT_NOFILE, (3, 3))
        got('changed')
    """,
    "secrets in variables": "SECRET in str(dict(os.environ)) and got('found')",
    "secrets in the first process": "SECRET.encode() in open('/proc/1/environ', 'rb').read() and got('found')",
    "secrets in the command line": "SECRET.encode() in open('/proc/1/cmdline', 'rb').read() and got('found')",
    "loopback of the host": "socket.create_connection(('127.0.0.1', PORT), 2); got('connected')",
    "abstract socket of the host": "s = socket.socket(socket.AF_UNIX); s.connect('\\0' + ABSTRACT); got('connected')",
    "socket file of the host": "s = socket.socket(socket.AF_UNIX); s.connect(SOCKET); got('connected')",
    "socket files of the host, created in unusual ways": """
        for how, path in SOCKETS.items():
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
                tried(lambda: (socket.socket(socket.AF_UNIX, kind).connect(path), got('connected: ' + how)))
    """,
    "a reconnected socket pair": """
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET, socket.SOCK_RAW):
            for path in (SOCKET, DATAGRAMS, *SOCKETS.values()):
                def again():
                    one, other = socket.socketpair(socket.AF_UNIX, kind)
                    other.close()
                    one.connect(path)
                    got('connected to ' + repr(path))
                def send():
                    one, other = socket.socketpair(socket.AF_UNIX, kind)
                    one.sendto(b'x', path)
                    other.setblocking(False)
                    other.recv(1) == b'x' or got('sent')  # unless it went to the other end
                tried(again)
                tried(send)
    """,
    "metadata address": "socket.create_connection(('169.254.169.254', 80), 2); got('connected')",
    "datagrams": "s = socket.socket(type=socket.SOCK_DGRAM); s.connect(('8.8.8.8', 53)); s.send(b'x'); got('sent')",
    "name lookup": "socket.getaddrinfo('example.com', 80); got('looked up')",
    "raw sockets": "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1); got('opened')",
    "packet sockets": "socket.socket(17, socket.SOCK_RAW, 0); got('opened')",
    "sockets to the hypervisor": "socket.socket(40, socket.SOCK_STREAM); got('opened')",
    "sockets to the kernel's ciphers": "socket.socket(38, 5); got('opened')",
    "the proxy, to the host": "asked('127.0.0.1:%d' % PORT)",
    "the proxy, to the host by name": "asked('localhost:%d' % PORT)",
    "the proxy, to metadata": "asked('169.254.169.254:80'); asked('[fd00:ec2::254]:80'); asked('metadata.google.internal:80')",
    "the proxy, to any host": "asked('example.com:443')",
    "the proxy, with a plain request": """
        s = socket.create_connection(('127.0.0.1', 41080), 5)
        s.sendall(b'GET http://169.254.169.254/latest/ HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')
        b' 403 ' in s.recv(100) or got('passed on')
    """,
    "remount": "libc.mount(None, b'/', None, 32 | 4096, None) == 0 and (open(CANARY, 'w'), got('remounted'))",
    "mount": "libc.mount(b'none', WORK.encode(), b'tmpfs', 0, None) == 0 and got('mounted')",
    "unmount": "libc.umount2(HOME.encode(), 2) == 0 and got('unmounted')",
    "change the root": "os.chroot(WORK); got('changed')",
    "new user namespace": "libc.unshare(0x10000000) == 0 and got('made')",
    "new user namespace by clone": """
        pid = libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0)
        if pid == 0:
            os._exit(0)
        pid > 0 and (os.waitpid(pid, 0), got('made'))
    """,
    "devices": "os.mknod(WORK + '/disk', 0o60600, os.makedev(8, 0)); got('made')",
    "memory of the machine": "open('/dev/mem', 'rb'); got('opened')",
    "kernel memory": "open('/proc/kcore', 'rb').read(4) and got('read')",
    "kernel settings": "open('/proc/sys/kernel/core_pattern', 'r+'); got('opened')",
    "kernel requests": "open('/proc/sysrq-trigger', 'w'); got('opened')",
    "control groups": """
        for folder, _, files in os.walk('/sys/fs/cgroup'):
            for name in set(files) & {'cgroup.procs', 'memory.max', 'pids.max', 'release_agent'}:
                tried(lambda: (open(os.path.join(folder, name), 'w'), got('opened ' + name)))
    """,
    "become another user": """
        other = 0 if os.getuid() else 12345
        os.setuid(other)
        got('became %d' % other)
    """,
    "leave a setuid program": """
        import shutil
        shutil.copy('/bin/sh', WORK + '/left')
        tried(lambda: os.chmod(WORK + '/left', 0o4755))
        tried(lambda: os.open(WORK + '/left2', os.O_CREAT | os.O_WRONLY, 0o6755))
        for name in ('left', 'left2'):
            tried(lambda: os.stat(WORK + '/' + name).st_mode & 0o6000 and got(name))
    """,
    "keyrings": "libc.syscall(250, 0, -3, 0) >= 0 and got('reached')",
    "io_uring": "libc.syscall(425, 1, ctypes.create_string_buffer(256)) >= 0 and got('made')",
    "BPF": "libc.syscall(321, 0, ctypes.create_string_buffer(256), 64); ctypes.get_errno() == 1 or got('reached')",
    "git hooks": "open(WORK + '/.git/hooks/post-checkout', 'w').write('x'); got('wrote')",
    "git configuration": "open(WORK + '/.git/config', 'a').write('x'); got('wrote')",
    "git moved away": "os.rename(WORK + '/.git', WORK + '/.git2'); got('moved')",
    "git through a link": "os.symlink(WORK + '/.git', WORK + '/g'); open(WORK + '/g/config', 'a').write('x'); got('wrote')",
    "editor tasks": "open(WORK + '/.vscode/tasks.json', 'w').write('x'); got('wrote')",
    "editor settings that don't exist yet": "os.makedirs(WORK + '/.idea', exist_ok=True); open(WORK + '/.idea/x', 'w'); got('wrote')",
    "skills that don't exist yet": "os.makedirs(WORK + '/.agents/skills'); got('made')",
    "a reserved name moved away": "os.rename(WORK + '/.idea', WORK + '/idea'); got('moved')",
    "a reserved name removed": "os.rmdir(WORK + '/.idea'); got('removed')",
    "a deeply nested repository": "open(WORK + '/a/b/c/d/e/.git/config', 'a').write('x'); got('wrote')",
    "a separate git folder": "open(WORK + '/separate/config', 'a').write('x'); got('wrote')",
    "signals to the first process": """
        for number in range(1, 65):
            tried(lambda: os.kill(1, number))
        import time
        time.sleep(0.2)
    """,
    "pipes of the first process": """
        for number in os.listdir('/proc/1/fd'):
            tried(lambda: os.write(os.open('/proc/1/fd/' + number, os.O_WRONLY | os.O_NONBLOCK), bytes([15])))
            tried(lambda: os.read(os.open('/proc/1/fd/' + number, os.O_RDONLY | os.O_NONBLOCK), 1000))
        import time
        time.sleep(0.2)
    """,
    "our own state": "open(STATE + '/keys.env').read() and got('read')",
    "write our own state": "open(STATE + '/keys.env', 'r+'); got('opened')",
    "our own drivers": "open(DRIVER, 'r+'); got('opened')",
    "our own Python": "open(os.path.join(sys.base_prefix, 'x'), 'w'); got('wrote')",
    "our own packages": """
        theirs = [entry for entry in sys.path if entry.endswith('site-packages') and not entry.startswith(sys.prefix)]
        open([sys.base_prefix, *theirs][-1] + '/x', 'w'); got('wrote')
        """,
    "a file that is too large": """
        with open(WORK + '/large', 'wb') as file:
            for _ in range(FILE_SIZE + 2):
                file.write(bytes(1 << 20))
        got('wrote')
    """,
    "shared memory that is too large": """
        with open('/dev/shm/large', 'wb') as file:
            for _ in range(FILE_SIZE + 2):
                file.write(bytes(1 << 20))
        got('wrote')
    """,
    "too many processes": """
        import subprocess
        bomb = 'import os, signal\\ntry:\\n  while True:\\n    if not os.fork(): signal.pause()\\n    print(1, flush=True)'
        bomb += '\\nexcept OSError: os.killpg(0, 9)'
        made = subprocess.Popen([sys.executable, '-Sc', bomb], stdout=-1, stderr=-3, process_group=0)
        count = sum(1 for _ in zip(made.stdout, range(PROCESSES + 20)))
        tried(lambda: os.killpg(made.pid, 9))
        made.wait()
        count >= PROCESSES + 20 and got('started %d' % count)
    """,
    "too much memory": "x = bytearray((MEMORY + 64) << 20); got('had')",
}

SHELL = {
    "write outside": 'echo x >"$CANARY" && got wrote',
    "delete outside": 'rm -f "$CANARY" && got deleted',
    "move outside": 'mv "$CANARY" "$CANARY.2" && got moved',
    "through a symbolic link": 'ln -s "$CANARY" "$WORK/l"; echo x >"$WORK/l" && got wrote',
    "through a hard link": 'ln "$CANARY" "$WORK/h" && got linked',
    "copy over": 'cp /etc/hostname "$CANARY" && got copied',
    "change times": 'touch "$CANARY" && got touched',
    "read a key": 'grep -q "$SECRET" "$KEY" && got read',
    "read a key recursively": 'grep -rq "$SECRET" "$(dirname "$KEY")" && got read',
    "list homes": "ls /home/*/.ssh /root/.ssh 2>/dev/null | grep -q . && got listed",
    "through the root of a process": 'for p in /proc/[0-9]*; do echo x >"$p/root$CANARY" && got "$p"; done',
    "see host processes": "test -e /proc/$HOST && got seen",
    "signal a host process": "kill -0 $HOST && got signalled",
    "secrets in variables": 'env | grep -q "$SECRET""$REST" && got found',
    "loopback of the host": "exec 9<>/dev/tcp/127.0.0.1/$PORT && got connected",
    "metadata address": "exec 9<>/dev/tcp/169.254.169.254/80 && got connected",
    "name lookup": 'getent ahosts example.com && got "looked up"',
    "remount": "mount -o remount,rw / && got remounted",
    "mount": 'mount -t tmpfs none "$WORK" && got mounted',
    "bind": 'mount --bind / "$WORK" && got bound',
    "new user namespace": "unshare -Ur true && got made",
    "nested sandbox": "bwrap --bind / / --unshare-user true && got made",
    "another user": "su nobody -s /bin/sh -c true </dev/null && got became",
    "sudo": "sudo -n true && got became",
    "devices": 'mknod "$WORK/sda" b 8 0 && got made',
    "leave a setuid program": 'cp /bin/sh "$WORK/s"; chmod u+s "$WORK/s"; test -u "$WORK/s" && got left',
    "kernel settings": "echo 1 >/proc/sys/kernel/panic && got wrote",
    "git hooks": 'echo x >"$WORK/.git/hooks/pre-commit" && got wrote',
    "git settings": '(cd "$WORK" && git config core.fsmonitor evil) && got wrote',
    "git moved away": 'mv "$WORK/.git" "$WORK/elsewhere" && got moved',
    "editor settings that don't exist yet": 'mkdir -p "$WORK/.idea"; echo x >"$WORK/.idea/x" && got wrote',
    "a deeply nested repository": 'echo x >>"$WORK/a/b/c/d/e/.git/config" && got wrote',
    "a separate git folder": 'echo x >>"$WORK/separate/config" && got wrote',
    "socket files of the host": """
        connect='import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])'
        for path in "$SOCKET" "$WORK/host-socket"; do python3 -c "$connect" "$path" 2>/dev/null && got "$path"; done
        for path in "$(dirname "$SOCKET")"/*socket*; do python3 -c "$connect" "$path" 2>/dev/null && got "$path"; done
    """,
    "signals to the first process": "for n in $(seq 1 64); do kill -$n 1 2>/dev/null; done; sleep 0.2",
    "our own state": 'cat "$STATE/keys.env" && got read',
    "a file that is too large": 'dd if=/dev/zero of="$WORK/big" bs=1M count=$((FILE_SIZE + 2)) && got wrote',
}

JAVASCRIPT = {
    "write outside": "fs.writeFileSync(CANARY, 'x'); got('wrote')",
    "delete outside": "fs.unlinkSync(CANARY); got('deleted')",
    "through a symbolic link": "fs.symlinkSync(CANARY, WORK + '/jl'); fs.writeFileSync(WORK + '/jl', 'x'); got('wrote')",
    "through a hard link": "fs.linkSync(CANARY, WORK + '/jh'); got('linked')",
    "read a key": "if (fs.readFileSync(KEY, 'utf8').includes(SECRET)) got('read')",
    "see host processes": "if (fs.existsSync(`/proc/${HOST}`)) got('seen')",
    "signal a host process": "process.kill(HOST, 0); got('signalled')",
    "secrets in variables": "if (JSON.stringify(process.env).includes(SECRET)) got('found')",
    "loopback of the host": """
        await new Promise((resolve) => {
          const s = net.connect(PORT, '127.0.0.1', () => { got('connected'); s.destroy(); resolve(); });
          s.on('error', resolve);
        });
    """,
    "socket file of the host": """
        await new Promise((resolve) => {
          const s = net.connect(SOCKET, () => { got('connected'); s.destroy(); resolve(); });
          s.on('error', resolve);
        });
    """,
    "metadata address": "await fetch('http://169.254.169.254/', { signal: AbortSignal.timeout(2000) }); got('asked')",
    "name lookup": "await require('dns').promises.lookup('example.com'); got('looked up')",
    "write with a child process": "require('child_process').execFileSync('sh', ['-c', `echo x > ${CANARY}`]); got('wrote')",
    "new user namespace": "require('child_process').execFileSync('unshare', ['-Ur', 'true']); got('made')",
    "leave a setuid program": """
        fs.copyFileSync('/bin/sh', WORK + '/j');
        try { fs.chmodSync(WORK + '/j', 0o4755); } catch {}
        if (fs.statSync(WORK + '/j').mode & 0o6000) got('left');
    """,
    "git hooks": "fs.writeFileSync(WORK + '/.git/hooks/pre-push', 'x'); got('wrote')",
    "editor settings that don't exist yet": """
        try { fs.mkdirSync(WORK + '/.idea'); } catch {}
        fs.writeFileSync(WORK + '/.idea/x', 'x');
        got('wrote');
    """,
    "a deeply nested repository": "fs.appendFileSync(WORK + '/a/b/c/d/e/.git/config', 'x'); got('wrote')",
    "a separate git folder": "fs.appendFileSync(WORK + '/separate/config', 'x'); got('wrote')",
    "socket files of the host, created in unusual ways": """
        for (const [how, path] of Object.entries(SOCKETS)) {
          await new Promise((resolve) => {
            const s = net.connect(path, () => { got('connected: ' + how); s.destroy(); resolve(); });
            s.on('error', resolve);
          });
        }
    """,
    "signals to the first process": """
        for (let n = 1; n < 65; n++) { try { process.kill(1, n); } catch {} }
        await new Promise((resolve) => setTimeout(resolve, 200));
    """,
    "our own state": "if (fs.readFileSync(STATE + '/keys.env')) got('read')",
    "a file that is too large": """
        process.on('SIGXFSZ', () => {});
        const file = fs.openSync(WORK + '/jbig', 'w');
        for (let i = 0; i < FILE_SIZE + 2; i++) fs.writeSync(file, Buffer.alloc(1 << 20));
        got('wrote');
    """,
}

# Possible, as docs/security.md says.
DOCUMENTED = {
    "a named pipe outside": "os.open(PIPE, os.O_RDWR | os.O_NONBLOCK); got('opened')",
    "a lock on a file outside": "import fcntl; fcntl.flock(open(CANARY), fcntl.LOCK_EX | fcntl.LOCK_NB); got('locked')",
}

PYTHON_BEGIN = """
import ctypes, os, signal, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
HOME = os.path.expanduser('~')
def got(what): print('ESCAPED', what)
def tried(do):
    try:
        do()
    except Exception:
        pass
def asked(target):
    s = socket.create_connection(('127.0.0.1', 41080), 5)
    s.sendall(b'CONNECT %s HTTP/1.1\\r\\n\\r\\n' % target.encode())
    answer = s.recv(100)
    b' 200 ' in answer and got('let through to ' + target)
"""


@dataclass
class Result:
    escaped: list[str] = field(default_factory=list)
    tried: int = 0
    held: int = 0
    documented: list[str] = field(default_factory=list)
    survived: bool = True
    last_output: str = ""


def in_python(facts: Facts) -> list[tuple[str, str]]:
    names = {
        "CANARY": facts.canary,
        "KEY": facts.key,
        "WORK": facts.workspace,
        "PORT": facts.port,
        "STATE": facts.state,
    }
    names |= {"ABSTRACT": facts.abstract, "SOCKET": facts.socket, "HOST": facts.host_pid, "DRIVER": facts.driver}
    names |= {"MEMORY": facts.memory, "FILE_SIZE": facts.file_size, "PROCESSES": facts.processes}
    names |= {"SOCKETS": facts.sockets, "DATAGRAMS": facts.datagrams, "PIPE": facts.pipe}
    # The secret is assembled at run time, so that it isn't found in the code itself.
    begin = "\n".join(f"{name} = {value!r}" for name, value in names.items())
    begin += f"\nSECRET = {facts.secret[:8]!r} + {facts.secret[8:]!r}"
    blocks = [("", begin + PYTHON_BEGIN)]
    for name, code in (PYTHON | DOCUMENTED).items():
        body = textwrap.indent(textwrap.dedent(code).strip(), "    ")
        blocks.append((name, f"try:\n{body}\nexcept (OSError, MemoryError) as error:\n    print('held:', error)\n"))
    return blocks


def in_shell(facts: Facts) -> list[tuple[str, str]]:
    names = {
        "CANARY": facts.canary,
        "KEY": facts.key,
        "WORK": facts.workspace,
        "PORT": facts.port,
        "STATE": facts.state,
    }
    names |= {"HOST": facts.host_pid, "SECRET": facts.secret[:8], "REST": facts.secret[8:], "SOCKET": facts.socket}
    names |= {"FILE_SIZE": facts.file_size}
    begin = "\n".join(f"{name}='{value}'" for name, value in names.items())
    blocks = [("", f'{begin}\ngot() {{ echo ESCAPED "$@"; }}')]
    return blocks + [(name, textwrap.dedent(code).strip()) for name, code in SHELL.items()]


def in_javascript(facts: Facts) -> list[tuple[str, str]]:
    names = {
        "CANARY": facts.canary,
        "KEY": facts.key,
        "WORK": facts.workspace,
        "PORT": facts.port,
        "STATE": facts.state,
    }
    names |= {"SOCKET": facts.socket, "HOST": facts.host_pid, "FILE_SIZE": facts.file_size, "SOCKETS": facts.sockets}
    begin = "".join(f"var {name} = {json.dumps(value)};\n" for name, value in names.items())
    begin += f"var SECRET = {json.dumps(facts.secret[:8])} + {json.dumps(facts.secret[8:])};\n"
    begin += "var fs = require('fs'), net = require('net'); function got(what) { console.log('ESCAPED', what); }\n"
    body = "await (async () => {{ {} }})().catch((error) => console.log('held:', error.message));"
    return [("", begin)] + [(name, body.format(textwrap.dedent(code))) for name, code in JAVASCRIPT.items()]


def attempt(language: Any, blocks: list[tuple[str, str]], final_check: tuple[str, str]) -> Result:
    """Run the probes one after the other in one runtime, which has to survive all of them."""
    result = Result()
    for name, code in blocks:
        output = output_of(language, code)
        result.tried += bool(name)
        if "ESCAPED" not in output:
            result.held += bool(name)
        elif name in DOCUMENTED:
            result.documented.append(name)
        else:
            result.escaped.append(f"{language.name}, {name}: {output.strip()}")
    question, answer = final_check
    result.last_output = output_of(language, question)
    result.survived = answer in result.last_output
    return result


def output_of(language: Any, code: str) -> str:
    return "".join(chunk["content"] for chunk in language.run(code) if chunk.get("format") == "output")


def attempt_all(facts: Facts, kind: str = "workspace") -> dict[str, Result]:
    from interpreter.languages.javascript import JavaScript
    from interpreter.runtimes.launch import RuntimeContext
    from interpreter.runtimes.python import Python
    from interpreter.runtimes.shell import Shell
    from interpreter.sandbox.containment import Containment
    from interpreter.sandbox.sandbox import ResourceLimits, Sandbox

    limits = ResourceLimits(memory=facts.memory, processes=facts.processes, file_size=facts.file_size)
    hosts = ("localhost", f"localhost:{facts.port}", "169.254.169.254")
    # The outside is readable, so that only the sandbox prevents changes to it.
    paths = (str(Path(facts.canary).parent),)
    sandbox = Sandbox(kind, facts.workspace, hosts, paths=paths, limits=limits)
    containment = Containment(sandbox, state=(Path(facts.state),))
    results = {}

    class Computer:
        context = RuntimeContext(cwd=facts.workspace, containment=containment)

    for kind_of, blocks, check in (
        (Python, in_python(facts), ("print(HOME and 6 * 7)", "42")),
        (Shell, in_shell(facts), ("echo ${WORK:+here} $((6 * 7))", "here 42")),
        (JavaScript, in_javascript(facts), ("console.log(WORK && 6 * 7)", "42")),
    ):
        language = kind_of(Computer())
        try:
            results[language.name] = attempt(language, blocks, check)
        finally:
            language.terminate()
    containment.close()
    return results


if __name__ == "__main__":
    results = attempt_all(Facts(**json.loads(sys.argv[1])))
    print(json.dumps({name: asdict(result) for name, result in results.items()}))
