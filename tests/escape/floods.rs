//! Commands that flood the machine, so that a test beside them may fail: `scripts/escape` runs
//! these tests alone, one after the other.

use sandbox::Exit;

use super::harness::Area;
use super::limits::ends;

#[tokio::test]
async fn memory() {
    let area = Area::new();
    let mut spec = area.python("data = []\nwhile True: data.append(bytearray(1 << 20))");
    spec.limits.memory_bytes = 200 << 20;
    ends(&area, spec.clone(), Exit::MemoryExceeded).await;
    let several = "import os\nfor _ in range(3): os.fork()\ndata = bytearray(100 << 20)\nimport time\ntime.sleep(60)";
    spec.arguments[1] = several.into();
    spec.limits.memory_bytes = 400 << 20;
    ends(&area, spec.clone(), Exit::MemoryExceeded).await;
    // Shared memory.
    let mapped = "import mmap, time\nheld = []\nfor i in range(900): held.append(mmap.mmap(-1, 1 << 20)); held[-1][:] = bytes(1 << 20)\ntime.sleep(60)";
    spec.arguments[1] = mapped.into();
    ends(&area, spec, Exit::MemoryExceeded).await;
}

#[tokio::test]
async fn processes() {
    let area = Area::new();
    let mut spec = area.bash("bomb() { bomb | bomb & }; bomb; sleep 1000");
    spec.limits.processes = 64;
    ends(&area, spec.clone(), Exit::ProcessesExceeded).await;
    // Threads count too.
    let threads =
        "import threading, time\nfor _ in range(100): threading.Thread(target=time.sleep, args=(60,)).start()";
    let mut spec = area.python(threads);
    spec.limits.processes = 64;
    ends(&area, spec, Exit::ProcessesExceeded).await;
}

/// Each process leaves its session and its group before it forks on. They stop by themselves after
/// a second.
#[tokio::test]
async fn processes_that_scatter() {
    let area = Area::new();
    let source = "#include <time.h>\n#include <unistd.h>\nint main() { time_t end = time(0) + 2; \
                  while (time(0) < end) { if (fork() == 0) { setsid(); setpgid(0, 0); } } pause(); }";
    std::fs::write(area.work().join("bomb.c"), source).unwrap();
    let ran = area.run(&area.plain().await, area.bash("gcc -O1 -o bomb bomb.c")).await;
    assert_eq!(ran.end.exit, Exit::Code(0), "{}", ran.stderr);
    let mut spec = area.spec("./bomb", &[]);
    spec.limits.processes = 64;
    ends(&area, spec, Exit::ProcessesExceeded).await;
}

#[tokio::test]
async fn disk() {
    let area = Area::new();
    for script in [
        "for i in $(seq 1000); do head -c 10000000 /dev/zero > file$i; done; sleep 60",
        "cd $TMPDIR; for i in $(seq 1000); do head -c 10000000 /dev/zero > file$i; done; sleep 60",
    ] {
        let mut spec = area.bash(script);
        spec.limits.disk_bytes = 50 << 20;
        ends(&area, spec, Exit::DiskExceeded).await;
    }
    let many = "for i in range(10**9): open(str(i), 'w').close()";
    let deep = "import os, time\nfor i in range(300): os.mkdir('d' * 200); os.chdir('d' * 200)\ntime.sleep(60)";
    let unlisted = r"
import os, time
files = []
for i in range(100):
    files.append(open('file', 'wb')); os.unlink('file'); files[-1].write(bytes(10 << 20))
time.sleep(60)";
    // A file can have 65,000 names.
    let names = r"
import os
for i in range(10**9):
    if i % 60000 == 0: open(f'file{i}', 'w').close(); file = f'file{i}'
    os.link(file, str(i))";
    for script in [many, deep, unlisted, names] {
        let mut spec = area.python(script);
        spec.limits.disk_bytes = 50 << 20;
        ends(&area, spec, Exit::DiskExceeded).await;
    }
}
