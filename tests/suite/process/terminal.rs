//! What commands show on a terminal alone: colours and progress.

use serde_json::json;

use super::binary::{Ended, Home};
use super::service::Service;
use crate::support::text::{assert_contains, assert_lacks};

/// Runs a line of shell on a terminal. Its output has both outputs of the line.
async fn on_terminal(home: &Home, line: &str) -> Ended {
    home.write("line.sh", &format!("export TERM=xterm\n{line}"));
    home.start_shell("script -qefc 'sh line.sh' /dev/null </dev/null")
        .end()
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn colours_follow_the_terminal_and_no_color() {
    let used = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = used.local_addr().unwrap();
    let home = Home::with_file().variable("AGENT_RUNTIME_SERVICE_HOST", "10.0.0.1");
    let serve = format!("agent-runtime serve --listen {address}");
    for (line, has_colours) in [
        (serve.clone(), true),
        (format!("NO_COLOR= {serve}"), true),
        (format!("NO_COLOR=1 {serve}"), false),
        (format!("{serve} 2>log; code=$?; cat log; exit $code"), false),
        ("agent-runtime --nonsense".to_owned(), true),
        ("NO_COLOR=1 agent-runtime --nonsense".to_owned(), false),
    ] {
        let ended = on_terminal(&home, &line).await;
        let code = if line.contains("serve") { 1 } else { 2 };
        assert_eq!(ended.code, Some(code), "{line}: {}", ended.stdout);
        assert_eq!(
            ended.stdout.contains("\u{1b}["),
            has_colours,
            "{line}: {:?}",
            ended.stdout
        );
        if code == 1 {
            assert_contains!(ended.stdout, "a variable has no effect"; "{line}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn moving_sessions_shows_its_progress() {
    let home = Home::with_file();
    let service = Service::start(&home).await;
    let run = service.run("demo", None, "What is 1 + 1?").await;
    // Text that does not compress well, so that the file has several blocks.
    let words = (0_u64..60_000).map(|number| format!("{:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    let noise = words.collect::<Vec<_>>().concat();
    let files = json!({"changes": [{"path": "noise", "content": noise}]});
    let path = format!("/v1/sessions/{}/files", run["session_id"].as_str().unwrap());
    let changed = service.post(&path, files).await;
    let session = changed["session_id"].as_str().unwrap();
    service.stop().await;
    home.succeed(&["sessions", "export", session, "--output", "line.zst"])
        .await;
    let size = home.path().join("line.zst").metadata().unwrap().len();
    let half = size / 2;
    let slowly = format!(
        "(head -c {half} line.zst; sleep 0.5; tail -c +{} line.zst) | agent-runtime sessions import - --tenant",
        half + 1
    );
    let shown = on_terminal(&home, &format!("{slowly} acme")).await;
    assert_eq!(shown.code, Some(0), "{}", shown.stdout);
    assert_contains!(shown.stdout, " contents of files, ", "B/s", "2 sessions, 2 of them new");
    // The line of the progress is overwritten before the result.
    let (progress, result) = shown.stdout.rsplit_once('\r').unwrap();
    assert_contains!(progress, "sessions, ");
    assert_lacks!(result, "B/s");
    let logged = on_terminal(&home, &format!("{slowly} other 2>log; cat log")).await;
    assert_contains!(logged.stdout, "2 sessions, 2 of them new");
    assert_lacks!(logged.stdout, "B/s");
}
