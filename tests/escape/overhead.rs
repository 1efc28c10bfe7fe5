//! Measures the cost of the sandbox.

use std::time::{Duration, Instant};

use sandbox::{Exit, Output};
use tokio_util::sync::CancellationToken;

use super::harness::Area;

/// Returns the median and the minimum.
fn typical(mut times: Vec<Duration>) -> (Duration, Duration) {
    times.sort();
    (times[times.len() / 2], times[0])
}

#[tokio::test]
#[ignore = "a measurement"]
async fn overhead() {
    let area = Area::new();
    let bare = (0..50).map(|_| {
        let started = Instant::now();
        assert!(
            std::process::Command::new("/bin/true")
                .output()
                .unwrap()
                .status
                .success()
        );
        started.elapsed()
    });
    println!("bare: {:?}", typical(bare.collect()));
    for (tier, sandbox) in area.tiers().await {
        let (mut times, mut reported) = (Vec::new(), Vec::new());
        for _ in 0..50 {
            let started = Instant::now();
            let end = sandbox
                .run(area.spec("/bin/true", &[]), |_| (), CancellationToken::new())
                .await;
            assert_eq!(end.exit, Exit::Code(0));
            times.push(started.elapsed());
            reported.push(end.wall_time);
        }
        println!(
            "{tier}: {:?}, of that in the helper {:?}",
            typical(times),
            typical(reported)
        );
    }
    let started = Instant::now();
    let mut bytes = 0;
    let mut spec = area.bash("head -c 1000000000 /dev/zero");
    spec.limits.output_bytes = 1 << 40;
    let output = |output| {
        let (Output::Stdout(piece) | Output::Stderr(piece)) = output;
        bytes += piece.len();
    };
    area.sandbox().await.run(spec, output, CancellationToken::new()).await;
    println!("output: {} MB/s", bytes as u128 / 1000 / started.elapsed().as_millis());
}

/// Measures the cost of the helper while a command waits, with one process and with many.
#[tokio::test]
#[ignore = "a measurement"]
async fn supervision() {
    let area = Area::new();
    for children in [0, 50] {
        let script = format!(
            "import os, time\nfor _ in range({children}):\n  if os.fork() == 0: time.sleep(60)\nprint('ready', flush=True)\ntime.sleep(60)"
        );
        let (ready, mut readied) = tokio::sync::mpsc::unbounded_channel();
        let output = move |output| drop(ready.send(output));
        let cancel = CancellationToken::new();
        let sandbox = area.sandbox().await;
        let running = sandbox.run(area.python(&script), output, cancel.clone());
        let measuring = async {
            assert!(readied.recv().await.is_some(), "no output");
            tokio::time::sleep(Duration::from_secs(5)).await;
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", area.helper())).unwrap();
            let fields: Vec<&str> = stat.split_ascii_whitespace().collect();
            let ticks: u32 = fields[13..15].iter().map(|ticks| ticks.parse::<u32>().unwrap()).sum();
            println!(
                "supervision of {} processes: {}.{} % of a processor",
                children + 1,
                ticks / 5,
                ticks % 5 * 2
            );
            cancel.cancel();
        };
        tokio::join!(running, measuring);
    }
}
