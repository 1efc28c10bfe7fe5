//! System calls that reach past files, sockets and signals.

use sandbox::Exit;

use super::harness::Area;

/// Calls system calls by number. Each must fail, with one of these errors.
#[cfg(target_arch = "x86_64")]
#[tokio::test]
async fn dangerous_system_calls_are_refused() {
    let area = Area::new();
    let script = r#"
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def call(name, number, *arguments, expected=1):
    result = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) for a in arguments])
    error = ctypes.get_errno()
    if result != -1 or error != expected: print(name, result, error)
# In a PID namespace the parent has no number.
parent, service = os.getppid() or 1, int(os.environ["SERVICE"])
memory = ctypes.create_string_buffer(256)
address = ctypes.addressof(memory)
call("io_uring_setup", 425, 4, address, expected=38)
call("io_uring_enter", 426, 0, 0, 0, 0, 0, 0, expected=38)
call("io_uring_register", 427, 0, 0, 0, 0, expected=38)
for other in (parent, service):
    for request in (16, 0x4206, 0): call("ptrace", 101, request, other, 0, 0)
    call("process_vm_readv", 310, other, address, 1, address, 1, 0)
    call("process_vm_writev", 311, other, address, 1, address, 1, 0)
    call("kcmp", 312, other, other, 0, 0, 0)
    call("prlimit64", 302, other, 7, 0, address)
    call("sched_setaffinity", 203, other, 8, address)
    call("setpriority", 141, 0, other, 19)
    call("ioprio_set", 251, 1, other, 0)
call("setpriority of the user", 141, 2, 0, 19)
call("pidfd_getfd", 438, 0, 0, 0)
call("socket", 41, 1, 1, 0)
call("socket of x32", 0x40000000 + 41, 1, 1, 0, expected=38)
call("ptrace of x32", 0x40000000 + 521, 16, service, 0, 0, expected=38)
call("a newer call", 470, 0, 0, 0, expected=38)
call("mount", 165, address, address, address, 0, 0)
call("umount", 166, address, 0)
call("chroot", 161, address)
call("pivot_root", 155, address, address)
for number in range(428, 434): call("mounts", number, 0, address, 0, 0, 0)
call("mount_setattr", 442, -100, address, 0, address, 32)
call("open_tree_attr", 467, -100, address, 0, address, 32, expected=38)
call("unshare", 272, 0x10000000)
call("setns", 308, 0, 0)
call("clone with a user namespace", 56, 0x10000000 | 17, 0, 0, 0, 0)
call("clone with a mount namespace", 56, 0x00020000 | 17, 0, 0, 0, 0)
call("clone3", 435, address, 64, expected=38)
call("openat2", 437, -100, address, address, 24, expected=38)
for number in (248, 249, 250): call("keys", number, 0, 0, 0, 0, 0)
call("bpf", 321, 0, address, 64)
call("perf_event_open", 298, address, 0, -1, -1, 0)
call("userfaultfd", 323, 0, expected=38)
call("memfd_create", 319, address, 0, expected=38)
for number in (29, 30, 31, 67): call("shared memory of System V", number, 0, 0, 0o1600)
for number in (64, 65, 66, 220): call("semaphores of System V", number, 0, address, 1, 0)
for number in (68, 69, 70, 71): call("messages of System V", number, 0, address, 0, 0, 0o4000)
for number in range(240, 246): call("messages of POSIX", number, address, 0o100, 0o600, 0)
for number in (444, 445, 446): call("landlock", number, 0, 0, 1, expected=38)
for number in (457, 458): call("mounts of the host", number, address, address, 256, 0, expected=38)
for number in (459, 460, 461): call("modules of the host", number, address, address, 0, 0, expected=38)
for number in range(206, 211): call("requests of a number for all", number, 1, address, 0, 0, 0, expected=38)
for number in (40, 275, 276, 278): call("pages in a pipe", number, 1, 0, 0, 4096, 0, 0, expected=22)
for advice in (20, 21): call("memory moves out", 28, address & ~4095, 4096, advice, expected=22)
call("huge pages", 9, 0, 2 << 20, 3, 0x40022, -1, 0, expected=12)
call("core scheduling", 157, 62, 1, 0, 0, 0)
call("sysfs", 139, 3)
call("open_by_handle_at", 304, -100, address, 0)
call("init_module", 175, address, 0, address)
call("reboot", 169, 0, 0, 0, 0)
call("swapon", 167, address, 0)
call("settimeofday", 164, 8, 0)
call("iopl", 172, 3)
call("quotactl", 179, 0, address, 0, address)
print("done")"#;
    area.prints(area.python(script), "done").await;
}

/// No tree holds these, so the next command could miss them.
#[tokio::test]
async fn files_get_no_attributes() {
    let area = Area::new();
    let script = r#"
import ctypes, errno, fcntl, os, struct
libc = ctypes.CDLL(None, use_errno=True)
open("file", "w").close(); os.mkdir("directory"); os.symlink("file", "link")
def attempt(action, *arguments, **options):
    try: action(*arguments, **options); print(arguments, "is done")
    except OSError as error:
        if error.errno != errno.ENOTSUP: print(arguments, error)
everybody = 0xffffffff
acl = struct.pack("<IHHIHHIHHI", 2, 1, 7, everybody, 4, 5, everybody, 0x20, 5, everybody)
for path in ("file", "directory"):
    file = os.open(path, os.O_RDONLY)
    for name in ("user.a", "user.overlay.opaque", "trusted.a", "system.posix_acl_access", "system.posix_acl_default"):
        for target, options in ((path, {}), (file, {}), (path, {"follow_symlinks": False}), ("link", {})):
            attempt(os.setxattr, target, name, acl, **options)
            attempt(os.removexattr, target, name, **options)
        for number in (463, 466):
            result = libc.syscall(number, -100, path.encode(), 0, name.encode(), acl, 16)
            if (result, ctypes.get_errno()) != (-1, errno.ENOTSUP): print(number, result, ctypes.get_errno())
    for request in (0x40086602, 0x401c5820, 0x40806685, 0x800c6613, 0x5000940e, 0x4008941a,
        0x40305828, 0x40305829, 0x4030582a, 0x4030582b, 0x40305839): attempt(fcntl.ioctl, file, request, bytes(128))
    if os.listxattr(path): print(os.listxattr(path))
print("done")"#;
    area.prints(area.python(script), "done").await;
}

/// Calls `getpid` by the interface for 32 bits, whose numbers are others.
#[cfg(target_arch = "x86_64")]
#[tokio::test]
async fn there_are_no_system_calls_of_another_architecture() {
    let area = Area::new();
    let script = r#"
import ctypes, mmap
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
print(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))())"#;
    for (tier, sandbox) in area.tiers().await {
        let ran = area.run(&sandbox, area.python(script)).await;
        // SIGSYS, or SIGSEGV where the kernel has no such interface at all.
        assert!(matches!(ran.end.exit, Exit::Signal(31 | 11)), "{tier}: {:?}", ran.end);
        assert_eq!(ran.stdout, "", "{tier}");
    }
}

#[tokio::test]
async fn no_namespace_can_be_made() {
    let area = Area::new();
    let script = "exec 2>/dev/null
        for kind in --user --mount --net --ipc --uts --pid --cgroup --map-root-user; do
            unshare $kind true && echo made $kind
        done
        nsenter --target $SERVICE --mount true && echo entered
        echo done";
    area.prints(area.bash(script), "done").await;
}

/// Types into terminals: TIOCSTI and TIOCLINUX.
#[tokio::test]
async fn no_terminal_is_reached() {
    let area = Area::new();
    let script = r#"
import fcntl, os
files = [0, 1, 2]
for path in ["/dev/tty", "/dev/console", "/dev/ptmx", "/dev/tty0", "/dev/pts/0", "/dev/pts/1", "/dev/pts/ptmx"]:
    try: files.append(os.open(path, os.O_RDWR | os.O_NOCTTY)); print("opened", path)
    except OSError: pass
for file in files:
    for request in (0x5412, 0x541C, 0x540E):
        try: fcntl.ioctl(file, request, b"x"); print("typed", file)
        except OSError: pass
print("done")"#;
    area.prints(area.python(script), "done").await;
}

#[tokio::test]
async fn no_shared_memory_outlives_a_command() {
    let area = Area::new();
    let script = r#"
from multiprocessing import shared_memory
try: shared_memory.SharedMemory("escaped", create=True, size=4096); print("made")
except OSError: pass
try: open("/dev/shm/escaped", "w"); print("made a file")
except OSError: pass
print("done")"#;
    area.prints(area.python(script), "done").await;
    assert!(!std::fs::exists("/dev/shm/escaped").unwrap());
}

#[tokio::test]
async fn a_command_has_no_capability_and_can_gain_none() {
    let area = Area::new();
    let script = r#"
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
held = [c for c in range(41) if libc.prctl(23, c, 0, 0, 0) == 1]
class Header(ctypes.Structure): _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]
sets = (ctypes.c_uint32 * 6)()
libc.capget(ctypes.byref(Header(0x20080522, 0)), sets)
print(list(sets), libc.prctl(39, 0, 0, 0, 0), libc.prctl(21, 0, 0, 0, 0), libc.setuid(12345), libc.setgroups(0, None))"#;
    area.prints(area.python(script), "[0, 0, 0, 0, 0, 0] 1 2 -1 -1").await;
    let bounding = "import ctypes; print(sum(ctypes.CDLL(None).prctl(23, c, 0, 0, 0) == 1 for c in range(41)))";
    // Without privileges the bounding set can't be dropped, and gives nothing either.
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|of| std::os::unix::fs::MetadataExt::uid(&of) == 0);
    if is_root {
        area.prints(area.python(bounding), "0").await;
    }
}
