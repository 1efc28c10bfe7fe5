//! Control groups: the kernel keeps the limits, even while nobody watches.
//!
//! The tests need a directory of cgroup v2, which `scripts/escape` names in
//! `AGENT_RUNTIME_TEST_CGROUP` where the host has one.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use sandbox::{CommandEnd, CommandSpec, Exit, Sandbox, SandboxSettings};
use tokio_util::sync::CancellationToken;

use super::harness::{Area, names, until};

async fn sandbox(area: &Area, directory: &Path) -> Sandbox {
    let settings = SandboxSettings {
        cgroup: Some(directory.to_owned()),
        ..Area::settings()
    };
    area.probe(settings).await.unwrap()
}

/// The only group in the directory of an area.
fn group(directory: &Path) -> PathBuf {
    let groups = names(directory);
    let mut groups = groups.iter().filter(|name| name.starts_with("command-"));
    let group = groups.next().unwrap();
    assert_eq!(groups.next(), None);
    directory.join(group)
}

fn read(group: &Path, file: &str) -> String {
    fs::read_to_string(group.join(file)).unwrap()
}

/// Runs a script whose helper is stopped until the kernel has counted the event.
async fn unwatched(area: &Area, directory: &Path, spec: CommandSpec, counted: (&str, &str)) -> CommandEnd {
    let sandbox = sandbox(area, directory).await;
    let running = sandbox.run(spec, |_| (), CancellationToken::new());
    let watched = async {
        until("the command does not start", || area.work().join("ready").exists()).await;
        let helper = Pid::from_raw(area.helper().cast_signed()).unwrap();
        kill_process(helper, Signal::STOP).unwrap();
        fs::write(area.work().join("go"), "").unwrap();
        let group = group(directory);
        let (file, event) = counted;
        until("the kernel does not enforce the limit", || {
            let events = read(&group, file);
            events
                .lines()
                .any(|line| line.starts_with(event) && !line.ends_with(" 0"))
        })
        .await;
        if file == "pids.events" {
            let processes: u32 = read(&group, "pids.current").trim().parse().unwrap();
            assert!((20..=21).contains(&processes), "{processes}");
        }
        kill_process(helper, Signal::CONT).unwrap();
    };
    let (end, ()) = tokio::join!(running, watched);
    area.assert_nothing_is_left();
    assert!(!names(directory).iter().any(|name| name.starts_with("command-")));
    end
}

const BEGINNING: &str = "touch ready; while [ ! -e go ]; do sleep 0.01; done";

#[tokio::test]
async fn memory_is_limited_while_nobody_watches() {
    let area = Area::new();
    let Some(directory) = area.cgroup() else { return };
    let mut spec = area.bash(&format!("{BEGINNING}; exec /usr/bin/tail /dev/zero"));
    spec.limits.memory_bytes = 64 << 20;
    let end = unwatched(&area, &directory, spec, ("memory.events", "oom_kill ")).await;
    assert_eq!(end.exit, Exit::MemoryExceeded);
    // Pages of libraries count for the process, not for the group.
    assert!(end.peak_memory <= 80 << 20, "{end:?}");
}

/// The whole command ends, not merely the process that the kernel has chosen.
#[tokio::test]
async fn no_process_survives_the_excess_of_another_one() {
    let area = Area::new();
    let Some(directory) = area.cgroup() else { return };
    let script = format!("{BEGINNING}; /usr/bin/tail /dev/zero; touch survived; sleep 1000");
    let mut spec = area.bash(&script);
    spec.limits.memory_bytes = 64 << 20;
    let end = unwatched(&area, &directory, spec, ("memory.events", "oom_kill ")).await;
    assert_eq!(end.exit, Exit::MemoryExceeded);
    assert!(!area.work().join("survived").exists());
}

#[tokio::test]
async fn processes_are_limited_while_nobody_watches() {
    let area = Area::new();
    let Some(directory) = area.cgroup() else { return };
    let mut spec = area.bash(&format!("{BEGINNING}; while :; do sleep 1000 & done"));
    spec.limits.processes = 20;
    let end = unwatched(&area, &directory, spec, ("pids.events", "max ")).await;
    assert_eq!(end.exit, Exit::ProcessesExceeded);
}

#[tokio::test]
async fn a_group_ends_with_its_command() {
    let area = Area::new();
    let Some(directory) = area.cgroup() else { return };
    let sandbox = sandbox(&area, &directory).await;
    assert!(sandbox.protections().to_string().ends_with(", cgroup"));
    let left = || {
        names(&directory)
            .into_iter()
            .filter(|name| name.starts_with("command-"))
    };
    let ran = area.run(&sandbox, area.bash("setsid sleep 1000 & true")).await;
    assert_eq!(ran.end.exit, Exit::Code(0), "{}", ran.stderr);
    assert_eq!(left().count(), 0);
    let mut spec = area.bash("sleep 1000");
    spec.limits.wall_time = Duration::from_millis(300);
    assert_eq!(area.run(&sandbox, spec).await.end.exit, Exit::TimedOut);
    assert_eq!(left().count(), 0);
    // What a helper that was killed has left goes when the service starts the next time.
    let running = sandbox.run(area.bash("touch ready; sleep 1000"), |_| (), CancellationToken::new());
    let killed = async {
        until("the command does not start", || area.work().join("ready").exists()).await;
        let helper = Pid::from_raw(area.helper().cast_signed()).unwrap();
        kill_process(helper, Signal::KILL).unwrap();
    };
    let (end, ()) = tokio::join!(running, killed);
    assert!(matches!(end.exit, Exit::Failed { .. }), "{end:?}");
    area.wait_until_nothing_is_left().await;
    assert_eq!(left().count(), 1);
    self::sandbox(&area, &directory).await;
    assert_eq!(left().count(), 0);
}

#[tokio::test]
async fn a_directory_that_is_no_control_group_is_refused() {
    let area = Area::new();
    let mut unusable = vec![area.path("none"), area.work()];
    if let Some(directory) = area.cgroup() {
        // The suite itself is in it.
        unusable.push(directory.parent().unwrap().join("suite"));
    }
    for directory in unusable {
        let settings = SandboxSettings {
            cgroup: Some(directory.clone()),
            ..Area::settings()
        };
        let error = area.probe(settings).await.unwrap_err().to_string();
        let expected = "commands can't have control groups (can't switch on the controllers";
        assert!(error.starts_with(expected), "{directory:?}: {error}");
    }
}
