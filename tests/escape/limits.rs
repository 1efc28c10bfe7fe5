//! Each limit ends the command, with its own exit.

use std::time::{Duration, Instant};

use sandbox::{CommandSpec, Exit};

use super::harness::Area;

pub(crate) async fn ends(area: &Area, spec: CommandSpec, expected: Exit) {
    for (tier, sandbox) in area.tiers().await {
        area.empty_but("bomb");
        let started = Instant::now();
        let ran = area.run(&sandbox, spec.clone()).await;
        assert_eq!(
            ran.end.exit,
            expected,
            "{tier}: {}",
            ran.stderr.lines().take(5).collect::<String>()
        );
        assert!(
            started.elapsed() < Duration::from_mins(1),
            "{tier}: it took {:?}",
            started.elapsed()
        );
    }
}

#[tokio::test]
async fn time() {
    let area = Area::new();
    let mut spec = area.bash("trap '' TERM HUP INT; exec 1>&- 2>&-; while :; do sleep 1000; done");
    spec.limits.wall_time = Duration::from_millis(300);
    ends(&area, spec, Exit::TimedOut).await;
    let mut spec = area.bash("kill -STOP 0; kill -STOP $$; sleep 1000");
    spec.limits.wall_time = Duration::from_millis(300);
    ends(&area, spec, Exit::TimedOut).await;
}

#[tokio::test]
async fn processor_time() {
    let area = Area::new();
    let mut spec = area.bash("while :; do :; done");
    spec.limits.cpu_time = Duration::from_millis(300);
    ends(&area, spec.clone(), Exit::CpuExceeded).await;
    // Of several processes, and of those that have ended.
    spec.arguments[1] = "for i in 1 2 3; do (while :; do :; done) & done; wait".into();
    ends(&area, spec.clone(), Exit::CpuExceeded).await;
    spec.arguments[1] = "while :; do /bin/true; done".into();
    ends(&area, spec, Exit::CpuExceeded).await;
}

#[tokio::test]
async fn shared_memory_counts_once() {
    let area = Area::new();
    let script =
        "import os, time\ndata = bytearray(100 << 20)\nfor _ in range(3): os.fork()\ntime.sleep(0.3)\nprint('x')";
    let mut spec = area.python(script);
    spec.limits.memory_bytes = 300 << 20;
    for (tier, sandbox) in area.tiers().await {
        let ran = area.run(&sandbox, spec.clone()).await;
        assert_eq!(ran.end.exit, Exit::Code(0), "{tier}");
        assert!(
            (100 << 20..300 << 20).contains(&ran.end.peak_memory),
            "{tier}: {:?}",
            ran.end
        );
    }
}

#[tokio::test]
async fn size_of_a_file() {
    let area = Area::new();
    let mut spec = area.bash("head -c 20000000 /dev/zero > file; stat -c %s file");
    spec.limits.file_bytes = 1 << 20;
    area.prints(spec, "1048576").await;
    assert_eq!(std::fs::metadata(area.work().join("file")).unwrap().len(), 1 << 20);
}

/// The kernel could give a file all of the disk before anybody sees that.
#[tokio::test]
async fn space_is_taken_by_writing_alone() {
    let area = Area::new();
    let script = r"
import ctypes, errno, os
file = os.open('file', os.O_CREAT | os.O_WRONLY)
libc = ctypes.CDLL(None, use_errno=True)
if libc.fallocate(file, 0, ctypes.c_long(0), ctypes.c_long(1 << 20)) == -1: print(errno.errorcode[ctypes.get_errno()])
os.posix_fallocate(file, 0, 1 << 20)
print(os.stat('file').st_blocks * 512 >= 1 << 20)";
    area.prints(area.python(script), "ENOTSUP\nTrue").await;
}

#[tokio::test]
async fn open_files() {
    let area = Area::new();
    let mut spec = area.python("import os\ntry:\n  while True: os.dup(0)\nexcept OSError as e: print(e.errno)");
    spec.limits.open_files = 50;
    area.prints(spec, "24").await;
}

#[tokio::test]
async fn output() {
    let area = Area::new();
    for script in ["yes", "yes >&2", "yes & yes >&2"] {
        let mut spec = area.bash(script);
        spec.limits.output_bytes = 1 << 20;
        for (tier, sandbox) in area.tiers().await {
            let ran = area.run(&sandbox, spec.clone()).await;
            assert_eq!(ran.end.exit, Exit::OutputExceeded, "{tier}");
            assert_eq!(ran.stdout.len() + ran.stderr.len(), 1 << 20, "{tier}");
        }
    }
    // What is in the pipe at the end counts.
    let mut spec = area.bash("echo 0123456789");
    spec.limits.output_bytes = 5;
    let ran = area.run(&area.sandbox().await, spec).await;
    assert_eq!((ran.end.exit, ran.stdout.as_str()), (Exit::OutputExceeded, "01234"));
}
