//! Control messages of replicas that share a server: received by all, once each, and again after an
//! outage.

use std::time::Duration;

use agent::record::RunControl;
use board::{Board, ControlMessage, LiveRun};
use futures_util::StreamExt as _;
use test_support::live_run::new_run;
use test_support::redis_server::{EXPIRY, SLACK, TIMEOUT};
use tokio::time::timeout;
use values::tenant::TenantId;

use crate::{append, close, open, private_replicas, until};

#[tokio::test]
async fn messages_reach_the_other_replicas_once_each() {
    let Some((_server, here, there, tenant)) = private_replicas(EXPIRY).await else {
        return;
    };
    let run = new_run(None);
    open(&there, &tenant, &run, false).await.unwrap();
    let (mut received_here, mut received_there) = (here.control_messages(), there.control_messages());
    let run_id = run.summary.run_id;
    until_sent(&here, &tenant, &run).await;
    let stop = ControlMessage::Control(RunControl::Stop);
    assert!(here.control_send(&tenant, run_id, stop.clone()).await);
    for received in [&mut received_here, &mut received_there] {
        let controls = received.filter(|(_, _, signal)| std::future::ready(*signal != ControlMessage::Refresh));
        let first = timeout(Duration::from_secs(20), Box::pin(controls).next())
            .await
            .unwrap();
        assert_eq!(first, Some((tenant.clone(), run_id, stop.clone())));
    }
    // Each replica receives its own once, not from the server again.
    let own = ControlMessage::Control(RunControl::Cancel);
    assert!(here.control_send(&tenant, run_id, own.clone()).await);
    assert!(here.control_send(&tenant, run_id, stop.clone()).await);
    for wanted in [own, stop] {
        let signal = timeout(Duration::from_secs(20), received_there.next()).await.unwrap();
        assert_eq!(signal, Some((tenant.clone(), run_id, wanted.clone())));
        let signal = timeout(Duration::from_secs(20), received_here.next()).await.unwrap();
        assert_eq!(signal, Some((tenant.clone(), run_id, wanted)));
    }
    there.close().await;
    // Nobody is left who could run it.
    let sent = async || here.control_send(&tenant, run_id, ControlMessage::Refresh).await;
    until(false, sent).await;
    here.close().await;
}

/// Waits until another replica receives, which takes a moment from its start.
async fn until_sent(board: &Board, tenant: &TenantId, run: &LiveRun) {
    until(true, async || {
        board
            .control_send(tenant, run.summary.run_id, ControlMessage::Refresh)
            .await
    })
    .await;
}

#[tokio::test]
async fn changes_and_messages_are_received_again_after_an_outage() {
    let Some((mut server, here, there, tenant)) = private_replicas(EXPIRY).await else {
        return;
    };
    let (run, own) = (new_run(None), new_run(None));
    open(&there, &tenant, &run, false).await.unwrap();
    open(&here, &tenant, &own, false).await.unwrap();
    until_sent(&here, &tenant, &run).await;
    server.stop();
    let sent = here.control_send(&tenant, run.summary.run_id, ControlMessage::Refresh);
    assert!(!timeout(TIMEOUT + SLACK, sent).await.unwrap());
    // A run of this process is reached all the same.
    let mut received = here.control_messages();
    let run_id = own.summary.run_id;
    assert!(here.control_send(&tenant, run_id, ControlMessage::Refresh).await);
    assert_eq!(
        received.next().await,
        Some((tenant.clone(), run_id, ControlMessage::Refresh))
    );

    server.restart();
    until_sent(&here, &tenant, &run).await;
    let followed = timeout(Duration::from_secs(20), async {
        loop {
            let change = here.run_change(run.summary.run_id);
            let events = here.event_read(&tenant, run.summary.run_id, 0, 10).await;
            if events.is_ok_and(|events| !events.is_empty()) {
                return;
            }
            change.await;
        }
    });
    let emit = async { append(&there, &tenant, &run, 1..=1, "a") };
    let (followed, ()) = tokio::join!(followed, emit);
    assert!(followed.is_ok(), "no change was received");
    close([&here, &there]).await;
}
