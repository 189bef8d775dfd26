"""Candidates that attack their verifier, each with the reasons that its verdict may have."""

from __future__ import annotations

import platform
from dataclasses import dataclass

from tests.verifiers.programs import HOARDER

HONEST = "def f(x):\n    return x * 2 + 1\n"
INPUTS = (1, 5, 7)


@dataclass(frozen=True)
class Attack:
    """One kind of hostile candidate. Where the machine's speed chooses between reasons, all of them are right."""

    name: str
    source: str
    reasons: str
    """The verdict's reason, or several with spaces between."""
    leftovers: bool = False
    """Whether it leaves something that only a new container gets rid of."""


def _then_honest(name: str, body: str, reasons: str = "pass", **more: bool) -> Attack:
    """Does its harm once, then answers right: it passes, and must leave no trace."""
    lines = "\n".join(f"        {line}" for line in body.strip("\n").splitlines())
    source = f"import os, sys\ndone = []\ndef f(x):\n    if not done:\n        done.append(1)\n{lines}\n    return x * 2 + 1\n"
    return Attack(name, source, reasons, **more)


def _attempt(name: str, body: str) -> Attack:
    """Tries what must be refused. Answers right only if it was refused, so a pass shows the refusal."""
    lines = "\n".join(f"            {line}" for line in body.strip("\n").splitlines())
    source = (
        "import ctypes, os, resource, signal, sys\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        f"def f(x):\n    if x == 1:\n        try:\n{lines}\n"
        "        except OSError:\n            return x * 2 + 1\n        except ValueError:\n            return x * 2 + 1\n"
        "        return 'not refused'\n    return x * 2 + 1\n"
    )
    return Attack(name, source, "pass")


ATTACKS = (
    Attack("wrong answer", "def f(x): return x * 2", "mismatch"),
    Attack("wrong type", "def f(x): return float(x * 2 + 1)", "mismatch"),
    Attack("exception", "def f(x): raise KeyError(x)", "exception"),
    Attack("exception at import", "raise ValueError", "exception"),
    Attack("syntax error", "def f(x: return x", "syntax-error"),
    Attack("null byte", "def f(x): return x\0", "syntax-error"),
    Attack("lone surrogate", "def f(x): return '\ud800'", "syntax-error"),
    Attack("nesting that the compiler refuses", f"def f(x): return {'(' * 1000}x{')' * 1000}", "syntax-error"),
    Attack("no entry point", "def g(x): return x", "missing-entry-point"),
    Attack("entry point is no function", "f = 3", "missing-entry-point"),
    Attack("endless loop", "def f(x):\n    while True: pass", "cpu-limit"),
    Attack("endless loop at import", "while True: pass", "cpu-limit"),
    Attack(
        "endless loop that ignores every signal",
        "import signal\nfor n in set(signal.Signals) - {9, 19}: signal.signal(n, signal.SIG_IGN)\ndef f(x):\n    while True: pass",
        "cpu-limit",
    ),
    Attack(
        "endless loop with its own limit raised",
        "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (resource.getrlimit(resource.RLIMIT_CPU)[1],) * 2)\n"
        "def f(x):\n    while True:\n        try: pass\n        except BaseException: pass",
        "cpu-limit",
    ),
    Attack("endless loop in two processes", "import os\nos.fork()\nwhile True: pass", "cpu-limit"),
    Attack("catastrophic pattern", "import re\ndef f(x): return re.match('(a|aa)+$', 'a' * 60 + 'b')", "cpu-limit"),
    Attack(
        "message of an exception that never ends",
        "class E(Exception):\n    def __str__(self):\n        while True: pass\ndef f(x): raise E",
        "cpu-limit",
    ),
    Attack(
        "message of an exception that raises",
        "class E(Exception):\n    def __str__(self): raise self\ndef f(x): raise E",
        "exception",
    ),
    Attack("sleep", "import time\ndef f(x): time.sleep(1000)", "idle"),
    Attack("stops itself", "import os, signal\ndef f(x): os.kill(os.getpid(), signal.SIGSTOP)", "idle"),
    Attack("memory, one process", "def f(x):\n    hog = []\n    while True: hog.append(bytearray(2**20))", "oom"),
    Attack(
        "memory, several processes",
        "import os, time\ndef f(x):\n    told, tell = os.pipe()\n    for _ in range(4):\n        if os.fork() == 0:\n"
        "            hog = [bytearray(2**20) for _ in range(60)]\n            os.write(tell, b'x')\n            time.sleep(99)\n"
        "    os.close(tell)\n    while os.read(told, 1): pass\n    return x * 2 + 1",
        "oom",
    ),
    # When memory runs out the kernel takes the supervisor, because the candidate is smaller and lowered its own rank.
    Attack(
        "memory, and nobody to take but the supervisor",
        f"import ctypes, os\nPROGRAM = {HOARDER!r}\ndef f(x):\n    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)\n"
        "    with open('/proc/self/oom_score_adj', 'w') as rank: rank.write('0')\n"
        "    file = os.memfd_create('program')\n    os.write(file, PROGRAM)\n    os.execve(file, ['program'], {})",
        "oom" if platform.machine() == "x86_64" else "exception",
    ),
    Attack("memory that nobody has", "def f(x): return bytearray(2**50)", "oom"),
    Attack(
        "memory in files",
        "def f(x):\n    for n in range(99):\n        with open(str(n), 'wb') as file: file.write(bytes(2**20))",
        "exception oom",
    ),
    Attack("processes without end", "import os\ndef f(x):\n    while True: os.fork()", "exception cpu-limit oom"),
    Attack(
        "processes without end that go on",
        "import os\ndef f(x):\n    while True:\n        try: os.fork()\n        except OSError: pass",
        "cpu-limit oom",
    ),
    Attack(
        "threads without end",
        "import threading, time\ndef f(x):\n    while True: threading.Thread(target=time.sleep, args=(9,)).start()",
        "exception",
    ),
    Attack("giant output, returned", "def f(x): return 'x' * 10**8", "output-limit"),
    Attack("giant output, nested", "def f(x): return ['x' * 10**6] * 10**6", "output-limit"),
    Attack("giant output, in the pipe", "import os\ndef f(x):\n    while True: os.write(3, b'o' * 65536)", "output-limit"),
    Attack("deeply nested output", "def f(x):\n    out = []\n    for _ in range(5000): out = [out]\n    return out", "unencodable"),
    Attack("output that holds itself", "def f(x):\n    out = []\n    out.append(out)\n    return out", "unencodable"),
    Attack("one file too large", "def f(x): open('a', 'wb').write(bytes(2**26))", "exception"),
    Attack("sys.exit", "import sys\ndef f(x): sys.exit(0)", "early-exit"),
    Attack("sys.exit at import", "raise SystemExit", "early-exit"),
    Attack("os._exit", "import os\ndef f(x): os._exit(0)", "early-exit"),
    Attack(
        "another program instead",
        "import os, sys\ndef f(x): os.execv('/usr/local/bin/python3', ['python3', '-c', 'print(1)'])",
        "early-exit",
    ),
    Attack("every descriptor closed", "import os\ndef f(x):\n    os.closerange(0, 4096)\n    return x * 2 + 1", "early-exit"),
    Attack("kills itself", "import os\ndef f(x): os.kill(os.getpid(), 9)", "signal"),
    Attack("claims a CPU limit", "import os, signal\ndef f(x): os.kill(os.getpid(), signal.SIGXCPU)", "signal"),
    Attack("segfault", "import ctypes\ndef f(x): ctypes.string_at(0)", "signal"),
    Attack("recursion", "def f(x): return f(x)", "exception"),
    Attack("recursion without a limit", "import sys\nsys.setrecursionlimit(10**9)\ndef f(x): return f(x)", "signal oom cpu-limit"),
    Attack("forged end", "import os\ndef f(x):\n    os.write(3, b'.\\n')\n    os._exit(0)", "early-exit protocol-error"),
    Attack("forged results", "import os\ndef f(x):\n    os.write(3, b'o1\\no2\\no3\\n.\\n')\n    os._exit(0)", "mismatch"),
    Attack(
        "too many results",
        "import os\ndef f(x):\n    os.write(3, b'o%d\\n' % (x * 2 + 1))\n    return x * 2 + 1",
        "mismatch protocol-error",
    ),
    Attack(
        "forged frames everywhere",
        'import os, struct\nframe = struct.pack(\'>II\', 40, 30) + b\'{"ended":"exited","status":0}\'\ndef f(x):\n'
        "    for n in range(256):\n        try: os.write(n, frame)\n        except OSError: pass\n    os._exit(0)",
        "early-exit protocol-error",
    ),
    Attack(
        "letters that mean nothing",
        "import os\ndef f(x):\n    os.write(3, b'!infrastructure\\n')\n    os._exit(0)",
        "protocol-error",
    ),
    Attack("nothing but line ends", "import os\ndef f(x):\n    os.write(3, b'\\n' * 60000)\n    os._exit(0)", "protocol-error"),
    Attack("equal to everything", "class E:\n    def __eq__(self, other): return True\ndef f(x): return E()", "unencodable"),
    Attack(
        "an int of its own",
        "class E(int):\n    def __eq__(self, other): return True\n    __hash__ = int.__hash__\ndef f(x): return E(x * 2 + 1)",
        "unencodable",
    ),
    Attack("patched json", "import json\njson.dumps = lambda *a, **k: '3'\ndef f(x): return 0", "mismatch"),
    Attack(
        "patched codec",
        "import gc\nfor thing in gc.get_objects():\n"
        "    if getattr(thing, '__name__', '') == 'encode' and getattr(thing, '__module__', '') == 'schemas.values':\n"
        "        thing.__code__ = (lambda value, *, max_bytes=0: '3').__code__\ndef f(x): return 0",
        "mismatch",
    ),
    Attack(
        "frames and heap searched",
        "import gc, sys\ndef texts():\n    frame = sys._getframe()\n    while frame:\n        yield repr(frame.f_locals)\n"
        "        frame = frame.f_back\n"
        "    for thing in gc.get_objects():\n        if type(thing) in (list, tuple, dict): yield repr(thing)[:10**5]\n"
        "def f(x):\n    for text in texts():\n        if 'expected' in text and '15' in text: return 15\n    return 0",
        "mismatch",
    ),
    Attack(
        "hidden in the shape of a type",
        "class M(type):\n    @property\n    def __module__(cls): raise SystemExit\nclass E(metaclass=M): pass\n"
        "def f(x): return E()",
        "early-exit unencodable",
    ),
    _then_honest("a flood on standard output", "for _ in range(200): print('x' * 10**5)\nsys.stdout.flush()"),
    _then_honest("a thread that stays", "import threading, time\nthreading.Thread(target=time.sleep, args=(99,)).start()"),
    _then_honest(
        "a daemon", "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        while True: pass\n    os._exit(0)"
    ),
    _then_honest("kill everyone", "import signal\ntry: os.kill(-1, signal.SIGKILL)\nexcept OSError: pass"),
    _then_honest(
        "kill the process group", "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nos.killpg(0, signal.SIGTERM)"
    ),
    _then_honest(
        "files that stay",
        "os.makedirs('a/b/c')\nopen('a/b/x', 'w').write('x')\nos.chmod('a/b', 0)\nos.chmod('a', 0)\nopen('/tmp/y', 'w')",
    ),
    _then_honest("folders without end", "for _ in range(3000):\n    os.mkdir('d')\n    os.chdir('d')"),
    _then_honest(
        "files without end",
        "try:\n    for n in range(10**6): open(f'/tmp/{n}', 'w').close()\nexcept OSError: pass",
        reasons="pass cpu-limit",
    ),
    _then_honest("links", "os.symlink('/', 'a')\nos.symlink('a', '/tmp/b')\nos.symlink('/opt/evalnoise', '/tmp/c')"),
    _then_honest("no working directory", "os.rmdir('/tmp/job')"),
    _then_honest(
        "shared memory that stays", "import ctypes\nassert ctypes.CDLL(None).shmget(7, 4096, 0o1666) >= 0", leftovers=True
    ),
    _then_honest("a semaphore that stays", "import ctypes\nassert ctypes.CDLL(None).semget(7, 1, 0o1666) >= 0", leftovers=True),
    _then_honest(
        "exit handlers", "import atexit\natexit.register(os._exit, 3)\nclass D:\n    def __del__(self): os._exit(4)\nsys.d = D()"
    ),
    _then_honest("another home for the module", "sys.modules.clear()\nsys.path[:] = []\nsys.stdout = sys.stderr = None"),
    _attempt("a message queue", "open('/dev/mqueue/q', 'w')"),
    _attempt("descriptors of the supervisor", "open('/proc/1/fd/1', 'wb', buffering=0).write(b'x')"),
    _attempt("memory of the supervisor", "open('/proc/1/mem', 'rb')"),
    _attempt("limits of the supervisor", "resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0))"),
    _attempt("interrupt of the supervisor", "os.kill(1, signal.SIGINT)"),
    _attempt("end of the supervisor", "os.kill(1, signal.SIGKILL)"),
    _attempt("trace of the supervisor", "if libc.ptrace(16, 1, 0, 0) != 0: raise OSError"),
    _attempt("to be traced by the supervisor", "if libc.ptrace(0, 0, 0, 0) != 0: raise OSError"),
    _attempt("root", "os.setuid(0)"),
    _attempt("a name space", "if libc.unshare(0x10000000) != 0: raise OSError"),
    _attempt("a mount", "if libc.mount(b'none', b'/tmp', b'tmpfs', 0, None) != 0: raise OSError"),
    _attempt("the supervisor's files", "open('/opt/evalnoise/verifiers/supervisor/child.py', 'a')"),
    _attempt("the control group", "open('/sys/fs/cgroup/memory/memory.limit_in_bytes', 'w').write('9999999999')"),
    _attempt("a network", "import socket\nsocket.create_connection(('192.0.2.1', 80), 1)"),
    _attempt("descriptors of the supervisor, by its id", "if libc.syscall(438, libc.syscall(434, 1, 0), 0, 0) < 0: raise OSError"),
    _attempt("a lower chance to be killed for memory", "open('/proc/self/oom_score_adj', 'w', buffering=1).write('-1\\n')"),
    _attempt("a higher chance for the supervisor", "open('/proc/1/oom_score_adj', 'w', buffering=1).write('1000\\n')"),
    _attempt("a higher limit", "resource.setrlimit(resource.RLIMIT_CPU, (10**6, 10**6))"),
    # The file in memory that output goes to, and signals of limits.
    _attempt("output grown to a terabyte", "os.ftruncate(3, 2**40)"),
    _attempt("a terabyte set aside for output", "os.posix_fallocate(3, 0, 2**40)"),
    _attempt(
        "output behind a hole of ten gigabytes",
        "os.lseek(3, 10 * 2**30, os.SEEK_SET)\ntry: os.write(3, b'x')\nfinally: os.lseek(3, 0, 0)",
    ),
    _attempt("output sealed", "import fcntl\nfcntl.fcntl(3, 1033, 1 | 2 | 4 | 8)"),
    Attack("output behind a hole", "import os\ndef f(x):\n    os.lseek(3, 30 * 2**20, 0)\n    return x * 2 + 1", "output-limit"),
    Attack("output set aside", "import os\ndef f(x):\n    os.posix_fallocate(3, 0, 2**25)\n    return x * 2 + 1", "output-limit"),
    Attack("output cut", "import os\ndef f(x):\n    os.ftruncate(3, 0)\n    return x * 2 + 1", "protocol-error"),
    Attack("output opened anew", "def f(x):\n    open('/proc/self/fd/3', 'wb').close()\n    return x * 2 + 1", "protocol-error"),
    _then_honest(
        "output past the cache",
        "import fcntl\ntry: fcntl.fcntl(3, fcntl.F_SETFL, fcntl.fcntl(3, fcntl.F_GETFL) | os.O_DIRECT)\nexcept OSError: pass",
    ),
    Attack("output taken back", "import os\ndef f(x):\n    os.lseek(3, 0, 0)\n    return x * 2 + 1", "mismatch"),
    Attack(
        "output punched out",
        "import ctypes\nlibc = ctypes.CDLL(None)\ndef f(x):\n    if x == 7: libc.fallocate(3, 3, *map(ctypes.c_long, (0, 4096)))\n"
        "    return x * 2 + 1",
        "protocol-error",
    ),
    Attack("output elsewhere", "import os\ndef f(x):\n    os.dup2(os.pipe()[1], 3)\n    return x * 2 + 1", "early-exit"),
    Attack(
        "output changed by a daemon after the end",
        "import mmap, os\nos.ftruncate(3, 4096)\nview = mmap.mmap(3, 4096)\nif os.fork() == 0:\n    os.setsid()\n"
        "    if os.fork() == 0:\n        while True: view[:] = b'o3\\n' * 1365 + b'\\n'\n    os._exit(0)\n"
        "def f(x): return x * 2 + 1",
        "mismatch protocol-error early-exit pass",
    ),
    Attack(
        "output resized by a daemon after the end",
        "import os\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        while True:\n"
        "            for size in (0, 2**20, 5): os.ftruncate(3, size)\n    os._exit(0)\ndef f(x): return x * 2 + 1",
        "mismatch protocol-error early-exit output-limit pass",
    ),
    Attack(
        "no file may grow",
        "import resource as r, signal as s\ns.signal(s.SIGXFSZ, s.SIG_DFL)\nr.setrlimit(r.RLIMIT_FSIZE, (0, 0))\n"
        "def f(x): return x * 2 + 1",
        "signal",
    ),
    Attack(
        "no file may grow, silently",
        "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\ndef f(x): return x * 2 + 1",
        "early-exit",
    ),
    Attack(
        "a timer that ends it",
        "import signal\nsignal.setitimer(signal.ITIMER_PROF, 0.01)\ndef f(x):\n    while True: pass",
        "signal",
    ),
    Attack(
        "a timer that goes off in the middle of anything",
        "import signal\ndef go(*_): raise SystemExit\nsignal.signal(signal.SIGALRM, go)\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.002, 0.0001)\ndef f(x):\n    while True: pass",
        "early-exit",
    ),
    Attack(
        "every signal to itself",
        "import os, signal\nfor n in set(signal.Signals) - {9, 19}: signal.signal(n, signal.SIG_DFL)\n"
        "def f(x):\n    for n in (14, 27, 24, 25, 15): os.kill(os.getpid(), n)",
        "signal",
    ),
    _then_honest(
        "timers that go on",
        "import signal\nfor n in (14, 26, 27): signal.signal(n, signal.SIG_IGN)\n"
        "for n in (0, 1, 2): signal.setitimer(n, 0.001, 0.001)",
    ),
    _attempt(
        "descriptors in flight",
        "import array, socket\none, other = socket.socketpair()\n"
        "one.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [3]))])",
    ),
    _attempt("a socket's name", "import socket\nsocket.socket(socket.AF_UNIX).bind('\\0name')"),
    _attempt("a port", "import socket\nsocket.create_server(('127.0.0.1', 5555))"),
    _attempt("memory that no account names", "if libc.syscall(447, 0) < 0: raise OSError"),
    _attempt("a ring of system calls", "if libc.syscall(425, 8, ctypes.create_string_buffer(120)) < 0: raise OSError"),
    _attempt(
        "a key in a ring",
        "if libc.syscall({'x86_64': 248, 'aarch64': 217}[os.uname().machine], b'user', b'k', b'v', 1, -3) < 0: raise OSError",
    ),
    # The kernel would look for a module of that name, and what it loads stays there for all containers.
    _attempt(
        "a family of sockets that nobody has",
        "libc.syscall({'x86_64': 53, 'aarch64': 199}[os.uname().machine], 30, 1, 0, ctypes.create_string_buffer(8))\n"
        "if ctypes.get_errno() == 1: raise OSError",
    ),
    _attempt(
        "a discipline of a terminal",
        "libc.ioctl(os.open('/dev/ptmx', os.O_RDWR | os.O_NOCTTY), 0x5423, ctypes.byref(ctypes.c_int(13)))\n"
        "if ctypes.get_errno() == 1: raise OSError",
    ),
    _attempt(
        "a share of what the whole machine has",
        "number = {'x86_64': 206, 'aarch64': 0}[os.uname().machine]\n"
        "if libc.syscall(number, 8, ctypes.create_string_buffer(8)) < 0: raise OSError",
    ),
    _attempt(
        "a hint that stays with a shared file",
        "file = os.open('/opt/evalnoise/verifiers/supervisor/child.py', os.O_RDONLY)\n"
        "if libc.fcntl(file, 1036, ctypes.byref(ctypes.c_uint64(3))) < 0: raise OSError",
    ),
    _attempt("an old call of another interface", "if libc.syscall(0x40000000 + 41, 1, 1, 0) < 0: raise OSError"),
    _then_honest(
        "what asyncio and pipes need", "import asyncio, socket\nasyncio.run(asyncio.sleep(0))\nsocket.socketpair()\nos.pipe()"
    ),
    _then_honest(
        "room behind the end of the output's file",
        "import ctypes\nctypes.CDLL(None).fallocate(3, 1, ctypes.c_long(0), ctypes.c_long(2**25))",
    ),
)
