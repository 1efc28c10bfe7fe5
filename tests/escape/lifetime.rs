//! Nothing outlives its command, and no command outlives the service.

use std::process::{Command, Stdio};
use std::time::Duration;

use sandbox::{Exit, Output, Sandbox};
use tokio_util::sync::CancellationToken;

use super::harness::Area;

const SURVIVORS: &str = r#"
    setsid sleep 1000 &
    nohup sleep 1000 >/dev/null 2>&1 &
    (setsid bash -c 'trap "" TERM HUP; sleep 1000 & sleep 1000' &) &
    (bash -c 'exec -a innocent sleep 1000' </dev/null >/dev/null 2>&1 & disown) &
    /usr/bin/python3 -c '
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid() if os.getpgrp() != os.getpid() else None
        while True: time.sleep(1000)
' &
    sleep 0.2
    echo ready"#;

#[tokio::test]
async fn background_processes_end_with_their_command() {
    let area = Area::new();
    area.prints(area.bash(SURVIVORS), "ready").await;
}

#[tokio::test]
async fn a_child_may_be_a_subreaper() {
    let area = Area::new();
    let script = r#"
import ctypes, os, time
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
if os.fork() == 0:
    if os.fork() == 0:
        os.setsid()
        time.sleep(1000)
    os._exit(0)
time.sleep(0.1)
print("ready")"#;
    area.prints(area.python(script), "ready").await;
}

#[tokio::test]
async fn a_cancelled_command_ends() {
    let area = Area::new();
    for (tier, sandbox) in area.tiers().await {
        let cancel = CancellationToken::new();
        let on_ready = {
            let cancel = cancel.clone();
            move |_: Output| cancel.cancel()
        };
        let spec = area.bash(&format!("{SURVIVORS}; sleep 1000"));
        let end = sandbox.run(spec, on_ready, cancel).await;
        assert_eq!(end.exit, Exit::Cancelled, "{tier}");
        area.assert_nothing_is_left();
    }
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    let end = area
        .sandbox()
        .await
        .run(area.bash("sleep 1000"), |_| (), cancelled)
        .await;
    assert_eq!(end.exit, Exit::Cancelled);
    area.wait_until_nothing_is_left().await;
}

#[tokio::test]
async fn a_command_that_nobody_waits_for_ends() {
    let area = Area::new();
    for (_, sandbox) in area.tiers().await {
        let (ready, mut readied) = tokio::sync::mpsc::unbounded_channel();
        let spec = area.bash(&format!("{SURVIVORS}; sleep 1000"));
        let output = move |output| drop(ready.send(output));
        let running = sandbox.run(spec, output, CancellationToken::new());
        tokio::select! {
            end = running => panic!("{end:?}"),
            output = readied.recv() => assert!(output.is_some()),
        }
        area.wait_until_nothing_is_left().await;
    }
}

/// A service that is killed. Run by the test below.
#[tokio::test]
#[ignore = "a process of its own"]
async fn service() {
    let area = Area::new();
    println!("area {}", area.path("").display());
    println!("helper {}", std::process::id());
    let spec = area.bash(&format!("{SURVIVORS}; sleep 1000"));
    let output = |_| println!("ready");
    area.plain().await.run(spec, output, CancellationToken::new()).await;
}

#[tokio::test]
async fn a_command_ends_when_the_service_is_killed() {
    use std::io::{BufRead as _, BufReader};
    let mut service = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "lifetime::service", "--ignored", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut area = None;
    for line in BufReader::new(service.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        if let Some((_, path)) = line.split_once("area ") {
            area = Some(path.to_owned());
        }
        if line.contains("ready") {
            break;
        }
    }
    let area = area.unwrap();
    let inside = || {
        let find = format!("ls -l /proc/[0-9]*/cwd 2>/dev/null | grep -c -- '-> {area}'");
        let found = Command::new("sh").args(["-c", &find]).output().unwrap();
        String::from_utf8(found.stdout).unwrap().trim().parse::<u32>().unwrap()
    };
    assert!(inside() >= 5);
    service.kill().unwrap();
    service.wait().unwrap();
    for _ in 0..1000 {
        if inside() == 0 {
            std::fs::remove_dir_all(area).unwrap();
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{} processes are left", inside());
}

/// The kernel ends the command itself if its helper is killed, by an administrator for example. In
/// a PID namespace it ends everything.
#[tokio::test]
async fn a_command_ends_with_its_helper() {
    let area = Area::new();
    for (_, sandbox) in area.tiers().await {
        ends_with_its_helper(&area, &sandbox).await;
    }
}

async fn ends_with_its_helper(area: &Area, sandbox: &Sandbox) {
    let (ready, mut readied) = tokio::sync::mpsc::unbounded_channel();
    let output = move |output| drop(ready.send(output));
    let survivors = match sandbox.protections().pid_namespace_error {
        None => SURVIVORS,
        Some(_) => "echo ready",
    };
    let spec = area.bash(&format!("{survivors}; exec sleep 1000"));
    let killing = async {
        assert!(readied.recv().await.is_some(), "no output");
        assert!(
            Command::new("kill")
                .args(["-9", &area.helper().to_string()])
                .status()
                .unwrap()
                .success()
        );
    };
    let (end, ()) = tokio::join!(sandbox.run(spec, output, CancellationToken::new()), killing);
    assert!(matches!(end.exit, Exit::Failed { .. }), "{end:?}");
    while !area.processes().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn exits_are_reported() {
    let area = Area::new();
    for (script, exit) in [
        ("exit 0", Exit::Code(0)),
        ("exit 3", Exit::Code(3)),
        ("exit 126", Exit::Code(126)),
        ("kill -TERM $$; sleep 1", Exit::Signal(15)),
        ("ulimit -c unlimited; kill -SEGV $$; sleep 1", Exit::Signal(11)),
    ] {
        let ran = area.run(&area.sandbox().await, area.bash(script)).await;
        assert_eq!(ran.end.exit, exit, "{script}: {}", ran.stderr);
    }
    for program in [
        "/nothing/here",
        "no-such-program",
        "./none",
        "/etc/passwd",
        "/root/.bashrc",
    ] {
        let ran = area.run(&area.sandbox().await, area.spec(program, &[])).await;
        let Exit::Failed { message } = ran.end.exit else {
            panic!("{program}: {:?}", ran.end)
        };
        assert!(message.starts_with("can't execute the program: "), "{message}");
        assert_eq!(ran.stderr, "");
    }
}

#[tokio::test]
async fn input_reaches_the_command_whole() {
    let area = Area::new();
    for (_, sandbox) in area.tiers().await {
        for bytes in [0, 1, 100_000, 3_000_000] {
            let mut spec = area.spec("wc", &["-c"]);
            spec.stdin = vec![b'x'; bytes].into();
            let ran = area.run(&sandbox, spec).await;
            assert_eq!(ran.stdout.trim(), bytes.to_string());
            // One that does not read it.
            let mut spec = area.spec("echo", &["x"]);
            spec.stdin = vec![b'x'; bytes].into();
            assert_eq!(area.run(&sandbox, spec).await.stdout, "x\n");
        }
    }
}
