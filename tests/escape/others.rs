//! Other processes: the service, the helper, and those of other runs.

use super::harness::Area;

#[tokio::test]
async fn no_other_process_can_be_signalled() {
    let area = Area::new();
    // Signal 0 asks whether a signal could be sent.
    let script = r#"
import os
child = os.fork()
if child == 0:
    os.read(os.pipe()[0], 1)
others = [int(os.environ["SERVICE"]), os.getppid(), os.getppid() - 1, 1, 2] + list(range(3, os.getpid() - 1))
for pid in others:
    # In a PID namespace these are the command's own.
    if pid in (-1, 0, os.getpid(), child): continue
    try: os.kill(pid, 0); print("could signal", pid)
    except OSError: pass
print("done")"#;
    area.prints(area.python(script), "done").await;
}

/// The command and the helper share the pipes of the command only.
#[tokio::test]
async fn the_pipes_of_the_helper_can_not_be_written() {
    let area = Area::new();
    let script = r#"
import os
end = b'\x04\x02\x00\x00\x00{}'
for process in (os.getppid(), int(os.environ["SERVICE"])):
    for file in range(20):
        for path in (f"/proc/{process}/fd/{file}", f"/proc/{process}/task/{process}/fd/{file}"):
            for flags in (os.O_WRONLY, os.O_RDONLY, os.O_RDWR):
                try: os.write(os.open(path, flags | os.O_NONBLOCK), end); print("wrote", path)
                except OSError: pass
# On its own output it means nothing.
os.write(1, end + b"\n"); os.write(2, end)
print("done")"#;
    area.prints(area.python(script), "\u{4}\u{2}\0\0\0{}\ndone").await;
}

/// Lets the kernel signal the service when a pipe has data.
#[tokio::test]
async fn no_file_signals_the_service() {
    let area = Area::new();
    let script = r#"
import fcntl, os, socket, struct
SIGKILL, F_SETSIG, F_SETOWN_EX, FIOSETOWN = 9, 10, 15, 0x8901
service = int(os.environ["SERVICE"])
def attempt(action):
    try: action()
    except OSError: pass
a, b = socket.socketpair()
attempt(lambda: fcntl.fcntl(a, F_SETSIG, SIGKILL))
attempt(lambda: fcntl.fcntl(a, fcntl.F_SETOWN, service))
attempt(lambda: fcntl.fcntl(a, F_SETOWN_EX, struct.pack("ii", 1, service)))
attempt(lambda: fcntl.ioctl(a, FIOSETOWN, struct.pack("i", service)))
fcntl.fcntl(a, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
b.sendall(b"x")
print("done")"#;
    area.prints(area.python(script), "done").await;
}

#[tokio::test]
async fn a_command_sees_no_variable_and_no_file_of_the_service() {
    let area = Area::new();
    // What a careless parent of the service has left open.
    let inherited = std::fs::File::open("/etc/hostname").unwrap();
    rustix::io::fcntl_setfd(&inherited, rustix::io::FdFlags::empty()).unwrap();
    let ran = area.run(&area.sandbox().await, area.spec("env", &[])).await;
    let mut names: Vec<_> = ran
        .stdout
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name)
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["AREA", "HOME", "LANG", "MARK", "PATH", "SERVICE", "TMPDIR"]);
    let open =
        "import os\nfor f in range(3, 1024):\n  try: os.fstat(f); print(f)\n  except OSError: pass\nprint('done')";
    area.prints(area.python(open), "done").await;
    let terminal = "import os\nfor f in range(3): print(os.isatty(f), end=' ')\nprint(os.getsid(0) == os.getpid())";
    area.prints(area.python(terminal), "False False False True").await;
}
