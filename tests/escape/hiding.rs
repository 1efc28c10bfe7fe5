//! Commands that hide from supervision what they use, or that they exist.

use std::time::{Duration, Instant};

use sandbox::{CommandSpec, Exit};

use super::harness::Area;

/// Functions that Python lacks.
const CALLS: &str = r"
import ctypes, mmap, os, signal, socket, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
def hog():
    data = []
    for _ in range(400): data.append(bytearray(1 << 20))
    time.sleep(60)
def fill(file):
    for _ in range(100): os.write(file, bytes(1 << 20))
";

async fn ends(area: &Area, script: &str, change: fn(&mut CommandSpec), expected: Exit) {
    let mut spec = area.python(&format!("{CALLS}{script}"));
    spec.limits.wall_time = Duration::from_secs(20);
    spec.limits.memory_bytes = 200 << 20;
    spec.limits.disk_bytes = 50 << 20;
    change(&mut spec);
    for (tier, sandbox) in area.tiers().await {
        area.empty_but("");
        let started = Instant::now();
        let ran = area.run(&sandbox, spec.clone()).await;
        assert_eq!(ran.end.exit, expected, "{tier}: {}", ran.stderr);
        assert!(
            started.elapsed() < spec.limits.wall_time + Duration::from_secs(10),
            "{tier}: {:?}",
            started.elapsed()
        );
    }
}

/// The kernel shows names as they are, and these bytes are no text.
#[tokio::test]
async fn a_name_that_is_not_utf_8_hides_no_process() {
    let area = Area::new();
    let name = r"libc.prctl(15, b'\xff\xfe', 0, 0, 0)";
    ends(&area, &format!("{name}\nhog()"), |_| (), Exit::MemoryExceeded).await;
    let survivor = format!(
        "if os.fork() == 0:\n  {name}\n  if os.fork() == 0: time.sleep(1000)\n  time.sleep(1000)\ntime.sleep(0.2)"
    );
    ends(&area, &survivor, |_| (), Exit::Code(0)).await;
}

/// The kernel shows no memory and no files of a process whose first thread has ended.
#[tokio::test]
async fn the_end_of_the_first_thread_hides_nothing() {
    let area = Area::new();
    let with_thread = |action: &str| {
        format!("{action}\nthreading.Thread(target=work).start()\nlibc.syscall(60, 0)").replace("60, 0", EXIT_THREAD)
    };
    ends(&area, &with_thread("work = hog"), |_| (), Exit::MemoryExceeded).await;
    let unlisted = "
def work():
    time.sleep(0.2)
    file = os.open('file', os.O_CREAT | os.O_RDWR)
    os.unlink('file')
    fill(file)
    time.sleep(60)";
    ends(&area, &with_thread(unlisted), |_| (), Exit::DiskExceeded).await;
}

#[cfg(target_arch = "x86_64")]
const EXIT_THREAD: &str = "60, 0";
#[cfg(not(target_arch = "x86_64"))]
const EXIT_THREAD: &str = "93, 0";

#[tokio::test]
async fn a_directory_that_nobody_may_read_is_measured() {
    let area = Area::new();
    for script in [
        // Searchable at first, so that the file can be made.
        "os.mkdir('d')\nfile = os.open('d/file', os.O_CREAT | os.O_RDWR)\nos.chmod('d', 0)\nfill(file)\nos.close(file)\ntime.sleep(60)",
        "os.mkdir('d')\nos.chmod('d', 0o300)\nfile = os.open('d/file', os.O_CREAT | os.O_RDWR)\nfill(file)\nos.close(file)\ntime.sleep(60)",
        "os.makedirs('d/e')\nfile = os.open('d/e/file', os.O_CREAT | os.O_RDWR)\nos.chmod('d/e', 0)\nos.chmod('d', 0)\nfill(file)\nos.close(file)\ntime.sleep(60)",
    ] {
        ends(&area, script, |_| (), Exit::DiskExceeded).await;
    }
    // It stays as the command has made it.
    let script =
        "os.mkdir('d')\nos.chmod('d', 0)\ntime.sleep(0.5)\nassert os.stat('d').st_mode & 0o777 == 0\nos.rmdir('d')";
    ends(&area, script, |_| (), Exit::Code(0)).await;
}

/// A file without a name takes up space as long as somebody has it open.
#[tokio::test]
async fn a_file_without_a_name_can_be_hidden_nowhere() {
    let area = Area::new();
    let unlisted = "file = os.open('file', os.O_CREAT | os.O_RDWR)\nos.unlink('file')\n";
    // Other processes can't look into this one.
    let closed = format!("libc.prctl(4, 0, 0, 0, 0)\n{unlisted}fill(file)\ntime.sleep(60)");
    ends(&area, &closed, |_| (), Exit::DiskExceeded).await;
    // The kernel shows no files of a program that can't be read.
    let unreadable = "
import shutil
shutil.copy('/usr/bin/python3', 'mine')
os.chmod('mine', 0o111)
code = 'import os, time; file = os.open(\"file\", os.O_CREAT | os.O_RDWR); os.unlink(\"file\"); [os.write(file, bytes(1 << 20)) for _ in range(100)]; time.sleep(60)'
os.execv('mine', ['mine', '-c', code])";
    ends(&area, unreadable, |_| (), Exit::DiskExceeded).await;
    // In a message that nobody receives.
    let sent = format!(
        "{unlisted}a, b = socket.socketpair()\ntry:\n  socket.send_fds(a, [b'x'], [file])\n  print('sent')\nexcept PermissionError: sys.exit(7)"
    );
    ends(&area, &sent, |_| (), Exit::Code(7)).await;
    // In the files of a thread that has its own: CLONE_VM, SIGHAND and THREAD without FILES.
    let apart =
        "print(libc.syscall(56, 0x10000 | 0x800 | 0x100, 0, 0, 0, 0))\nsys.exit(7 if ctypes.get_errno() == 1 else 1)";
    let unshared = "print(libc.syscall(436, 100, 200, 2))\nsys.exit(7 if ctypes.get_errno() == 1 else 1)";
    if cfg!(target_arch = "x86_64") {
        ends(&area, apart, |_| (), Exit::Code(7)).await;
    }
    ends(&area, unshared, |_| (), Exit::Code(7)).await;
}

/// The kernel adds the time of children to that of their parent only if it waits for them.
#[tokio::test]
async fn processor_time_of_children_that_nobody_waits_for_counts() {
    let area = Area::new();
    let script = "
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while True:
    if os.fork() == 0:
        begun = time.process_time()
        while time.process_time() < begun + 0.15: pass
        os._exit(0)
    try: os.wait()
    except ChildProcessError: pass";
    let limit = |spec: &mut CommandSpec| spec.limits.cpu_time = Duration::from_millis(800);
    ends(&area, script, limit, Exit::CpuExceeded).await;
}

/// Such a child borrows all memory of its parent for a moment.
#[tokio::test]
async fn starting_a_program_does_not_double_the_memory() {
    let area = Area::new();
    let script = "
import subprocess
data = bytearray(140 << 20)
for _ in range(30): subprocess.run(['true'], check=True)";
    ends(&area, script, |_| (), Exit::Code(0)).await;
}

/// A parent waits in the same state as for a child that borrows its memory, which this one copies.
#[cfg(target_arch = "x86_64")]
#[tokio::test]
async fn a_parent_that_waits_for_its_child_is_measured() {
    let area = Area::new();
    let copies = |copy: &str, before: &str| {
        format!(
            "
data = mmap.mmap(-1, 60 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
def touch():
    for i in range(0, 60 << 20, 4096): data[i] = (data[i] + 1) & 255
touch()
for level in range(5):
    {before}
    if {copy} != 0: os.wait(); os._exit(0)
    touch()
time.sleep(60)"
        )
    };
    ends(
        &area,
        &copies("libc.syscall(56, 0x4000 | 17, 0, 0, 0, 0)", "pass"),
        |_| (),
        Exit::MemoryExceeded,
    )
    .await;
    // One of its threads always waits for the disk.
    let writes = "
def wait():
    file = os.open('waits', os.O_CREAT | os.O_WRONLY)
    while True: os.write(file, b'x'); os.fsync(file); os.lseek(file, 0, 0)";
    let script = format!(
        "{writes}{}",
        copies("os.fork()", "threading.Thread(target=wait, daemon=True).start()")
    );
    ends(&area, &script, |_| (), Exit::MemoryExceeded).await;
}

/// Such pages are resident in no process.
#[tokio::test]
async fn shared_memory_counts_that_no_process_has_in_its_page_tables() {
    let area = Area::new();
    let pages = |size: u32, drop: &str| {
        format!(
            "
size = {size}
held = []
for _ in range(400 * (1 << 20) // size):
    m = mmap.mmap(-1, size)
    m[:] = bytes(size)
    {drop}
    held.append(m)
    time.sleep(0.001)
time.sleep(60)"
        )
    };
    ends(
        &area,
        &pages(1 << 20, "m.madvise(mmap.MADV_DONTNEED)"),
        |_| (),
        Exit::MemoryExceeded,
    )
    .await;
    // Of each mapping, one page is left.
    let cut = "assert libc.munmap(ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(m)) + 4096), ctypes.c_size_t(size - 4096)) == 0";
    ends(&area, &pages(1 << 20, cut), |_| (), Exit::MemoryExceeded).await;
    // A larger one would count for too little, also by a device.
    let refused = "
try: mmap.mmap(-1, 8 << 20); sys.exit(1)
except OSError as error: assert error.errno == 12, error
try: open('/dev/zero', 'r+b'); sys.exit(2)
except PermissionError: pass
assert mmap.mmap(os.open('/dev/zero', os.O_RDONLY), 8 << 20, flags=mmap.MAP_PRIVATE)[5] == 0
sys.exit(7)";
    let settings = Area::settings();
    let mut spec = area.python(&format!("{CALLS}{refused}"));
    spec.limits.memory_bytes = 200 << 20;
    let ran = area.run(&area.probe(settings).await.unwrap(), spec).await;
    assert_eq!(ran.end.exit, Exit::Code(7), "{}", ran.stderr);
}

/// The kernel has these for the command, and no process shows them as resident.
#[tokio::test]
async fn memory_of_the_kernel_counts() {
    let area = Area::new();
    let tables = "
m = mmap.mmap(-1, 1 << 40, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, prot=mmap.PROT_READ)
for i in range(0, 1 << 40, 2 << 20): m[i]
time.sleep(60)";
    ends(&area, tables, |_| (), Exit::MemoryExceeded).await;
    // Fewer pairs than a process may have open files.
    let sockets = "
held = []
for _ in range(400):
    a, b = socket.socketpair()
    held.append((a, b))
    for s in (a, b):
        s.setblocking(False)
        try:
            while True: s.send(bytes(65536))
        except BlockingIOError: pass
time.sleep(60)";
    let less = |spec: &mut CommandSpec| spec.limits.memory_bytes = 100 << 20;
    ends(&area, sockets, less, Exit::MemoryExceeded).await;
}

/// Lists go out of date while they are read.
#[tokio::test]
async fn a_directory_that_moves_all_the_time_is_measured() {
    let area = Area::new();
    let moving = |setup: &str, moves: &str| {
        format!(
            "
os.makedirs('a'); os.makedirs('b'); os.makedirs('d0')
here = os.open('d0', os.O_DIRECTORY)
{setup}
if os.fork() == 0:
    n = 0
    while True:
        {moves}
for i in range(400):
    file = os.open(f'file{{i}}', os.O_CREAT | os.O_WRONLY, dir_fd=here)
    os.write(file, bytes(1 << 20)); os.close(file); time.sleep(0.005)
time.sleep(60)"
        )
    };
    let change = |spec: &mut CommandSpec| {
        spec.limits.disk_bytes = 100 << 20;
        spec.limits.wall_time = Duration::from_mins(1);
    };
    let names = "for i in range(500): os.close(os.open(f'x{i}', os.O_CREAT))";
    let renamed = moving(names, "os.rename(f'd{n}', f'd{n + 1}'); n += 1");
    ends(&area, &renamed, change, Exit::DiskExceeded).await;
    let between = moving(
        "",
        "os.rename('d0', 'a/d'); os.rename('a/d', 'b/d'); os.rename('b/d', 'd0')",
    );
    ends(&area, &between, change, Exit::DiskExceeded).await;
}

#[tokio::test]
async fn a_removed_file_that_is_mapped_and_not_open_counts() {
    let area = Area::new();
    let script = "
held = []
for i in range(100):
    with open('file', 'w+b') as file:
        file.write(bytes(1 << 20)); file.flush()
        m = libc.mmap
        m.restype = ctypes.c_void_p
        held.append(m(None, ctypes.c_size_t(1 << 20), 1, 2, file.fileno(), ctypes.c_long(0)))
    os.unlink('file')
time.sleep(60)";
    ends(&area, script, |_| (), Exit::DiskExceeded).await;
}

/// Otherwise each command of a run could leave as much as one may write.
#[tokio::test]
async fn what_earlier_commands_have_left_counts() {
    let area = Area::new();
    std::fs::write(area.work().join("left"), vec![1; 40 << 20]).unwrap();
    for (files_bytes, expected) in [(None, Exit::Code(0)), (Some(1 << 20), Exit::DiskExceeded)] {
        let mut spec = area.bash("head -c 20000000 /dev/zero > more; sleep 0.5; rm more; exit 0");
        spec.limits.disk_bytes = 50 << 20;
        spec.files_bytes = files_bytes;
        let ran = area.run(&area.sandbox().await, spec).await;
        assert_eq!(ran.end.exit, expected, "{files_bytes:?}");
    }
}
