//! `shell`: what the commands of a run share, and those of all tenants.

use std::sync::Arc;

use serde_json::json;
use values::session::EnvironmentState;
use workspace::environment::Environment;
use workspace::{InMemoryContents, WorkspaceLimits};

use super::Desk;
use super::shell::{Host, until};
use crate::support::text::assert_contains;

/// Temporary files and what is not part of the session would otherwise add up.
#[tokio::test(flavor = "multi_thread")]
async fn the_commands_of_a_run_share_its_room_on_the_disk() {
    let host = Host::with(|settings| settings.limits.disk_bytes = 20 << 20);
    let desk = host.desk();
    // What is part of the session does not count for later commands.
    for name in ["a", "b", "c"] {
        let text = desk.sh(&format!("head -c 15000000 /dev/zero > {name}")).await;
        assert_eq!(text, "(no output)");
    }
    let text = desk
        .sh("mkdir target; head -c 12000000 /dev/zero > target/x; sleep 0.2")
        .await;
    assert_contains!(text, "(no output)", "target (ephemeral: ");
    let text = desk
        .sh("echo kept > kept; head -c 12000000 /dev/zero > $TMPDIR/y; sleep 60")
        .await;
    assert_contains!(text, "took up more of the disk than they may");
    let text = desk.sh("cat kept; wc -c < a; ls target 2>/dev/null; ls $TMPDIR").await;
    assert_eq!(text, "kept\n15000000\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_has_half_of_the_commands_and_further_ones_wait() {
    let host = Host::with(|settings| settings.max_commands = 2);
    let (desk, second) = (host.desk(), host.desk());
    let contents = Arc::new(InMemoryContents::new("other".parse().unwrap()));
    let of_other = Desk {
        environment: Arc::new(Environment::restore(
            EnvironmentState::default(),
            contents,
            WorkspaceLimits::default(),
        )),
        ..host.desk()
    };
    let cancel = desk.cancellation.clone();
    let running = desk.call("shell", json!({"command": "echo x > begun; sleep 61"}));
    let others = async {
        until(|| host.has_begun()).await;
        let error = second
            .call("shell", json!({"command": "true", "timeout_seconds": 1}))
            .await
            .unwrap_err();
        assert_contains!(error, "as many commands as may run at the same time", "try again later");
        assert_eq!(of_other.sh("echo other").await, "other\n");
        let waiting = second.sh("echo second");
        let freed = async {
            tokio::task::yield_now().await;
            cancel.cancel();
        };
        let (text, ()) = tokio::join!(waiting, freed);
        assert_eq!(text, "second\n");
    };
    let (ended, ()) = tokio::join!(running, others);
    assert_contains!(ended.unwrap_err(), "cancelled");
}
