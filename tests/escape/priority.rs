//! A command yields to the service, however many processes and sessions it has.

use std::fs;

use sandbox::Exit;
use tokio_util::sync::CancellationToken;

use super::harness::{Area, until};

/// The scheduler would give each session a share of its own.
#[tokio::test]
async fn a_command_has_one_session_of_low_priority() {
    let autogroups = fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled").unwrap_or_default();
    if autogroups.trim() != "1" {
        eprintln!("SKIPPED: the kernel groups no sessions");
        return;
    }
    let area = Area::new();
    let script = "for i in 1 2 3 4; do setsid sleep 1000 & done
        /usr/bin/python3 -c 'import os, time; os.setsid(); time.sleep(1000)' &
        touch ready; wait";
    for (tier, sandbox) in area.tiers().await {
        area.empty_but("");
        let cancel = CancellationToken::new();
        let running = sandbox.run(area.bash(script), |_| (), cancel.clone());
        let watched = async {
            until("the command does not start", || area.work().join("ready").exists()).await;
            until(&format!("{tier}: its priority is not low"), || {
                let groups = area.pids().into_iter();
                let mut groups: Vec<_> = groups
                    .filter_map(|pid| fs::read_to_string(format!("/proc/{pid}/autogroup")).ok())
                    .collect();
                let processes = groups.len();
                groups.sort();
                groups.dedup();
                processes >= 6 && groups.len() == 1 && groups[0].trim().ends_with(" nice 5")
            })
            .await;
            cancel.cancel();
        };
        let (end, ()) = tokio::join!(running, watched);
        assert_eq!(end.exit, Exit::Cancelled, "{tier}");
    }
}

/// Measures the needs of a service next to a command with many sessions. Checks nothing, since the
/// figures depend on other work of the machine.
#[tokio::test]
#[ignore = "a measurement"]
async fn many_sessions() {
    let area = Area::new();
    for how in ["", "setsid"] {
        let script = format!("for i in $(seq 40); do {how} sh -c 'while :; do :; done' & done; touch ready; wait");
        let cancel = CancellationToken::new();
        let sandbox = area.plain().await;
        area.empty_but("");
        let running = sandbox.run(area.bash(&script), |_| (), cancel.clone());
        let measured = async {
            until("the command does not start", || area.work().join("ready").exists()).await;
            let work = "import time\nend = time.time() + 5\nwhile time.time() < end: pass\nprint(time.process_time())";
            let mut service = tokio::process::Command::new("setsid");
            let output = service.args(["--wait", "python3", "-c", work]).output().await.unwrap();
            let seconds = String::from_utf8_lossy(&output.stdout).into_owned();
            println!(
                "beside 40 processes ({how}): {} s of processor time in 5 s",
                seconds.trim()
            );
            cancel.cancel();
        };
        tokio::join!(running, measured);
    }
}
