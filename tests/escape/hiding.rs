//! Commands that hide from supervision what they use, or that they exist.

use std::time::{Duration, Instant};

use agent_runtime::sandbox::{CommandSpec, Exit};

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
            started.elapsed() < Duration::from_secs(30),
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
