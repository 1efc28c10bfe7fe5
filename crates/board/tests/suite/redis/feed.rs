//! Changes of tenants at other replicas.

use std::time::Duration;

use agent::record::RunStatus;
use board::{Board, ChangeReader, ChangesLost, TenantChange};
use test_support::live_run::new_run;
use test_support::redis_server::EXPIRY;
use tokio::time::timeout;
use values::tenant::TenantId;

use crate::feed::change_of;
use crate::{close, ended, open, private_replicas, replicas, until, with_step};

/// How long a change may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

fn probe() -> TenantChange {
    TenantChange::ThreadRemoved {
        thread: "probe".parse().unwrap(),
    }
}

/// Returns a reader at one replica which the other one reaches. A replica takes a moment to
/// subscribe after its start or an outage.
async fn reached(reading: &Board, publishing: &Board, tenant: &TenantId) -> ChangeReader {
    loop {
        let mut reader = reading.change_reader(tenant);
        loop {
            publishing.change_publish(tenant, probe());
            match timeout(Duration::from_millis(50), reader.next()).await {
                Ok(Ok(_)) => return reader,
                Ok(Err(_)) => break,
                Err(_) => (),
            }
        }
    }
}

/// Returns the next change that is no probe.
async fn next(reader: &mut ChangeReader) -> Result<TenantChange, ChangesLost> {
    let reading = async {
        loop {
            let change = reader.next().await;
            if change != Ok(probe()) {
                return change;
            }
        }
    };
    timeout(PATIENCE, reading).await.unwrap()
}

#[tokio::test]
async fn a_replica_reads_the_changes_of_another_once_each() {
    let Some((here, there, tenant)) = replicas().await else {
        return;
    };
    let mut reader = reached(&there, &here, &tenant).await;
    let (run, others) = (new_run(None), crate::new_tenant());
    open(&here, &others, &new_run(None), false).await.unwrap();
    open(&here, &tenant, &run, false).await.unwrap();
    assert_eq!(next(&mut reader).await, Ok(change_of(&run)));
    let stepped = with_step(&run, "one");
    here.run_update(&tenant, stepped.clone());
    let ended = ended(&stepped, RunStatus::Failed);
    here.run_update(&tenant, ended.clone());
    assert_eq!(next(&mut reader).await, Ok(change_of(&ended)));
    // Its own changes don't come back from the server.
    let own = new_run(None);
    open(&there, &tenant, &own, false).await.unwrap();
    assert_eq!(next(&mut reader).await, Ok(change_of(&own)));
    here.run_close(&tenant, run.summary.run_id);
    let last = TenantChange::of_run(&new_run(None).summary);
    here.change_publish(&tenant, last.clone());
    assert_eq!(next(&mut reader).await, Ok(last));
    close([&here, &there]).await;
}

#[tokio::test]
async fn a_reader_that_may_have_missed_changes_in_an_outage_gets_an_error() {
    let Some((mut server, here, there, tenant)) = private_replicas(EXPIRY).await else {
        return;
    };
    let mut reader = reached(&there, &here, &tenant).await;
    server.stop();
    here.change_publish(&tenant, probe());
    server.restart();
    assert_eq!(next(&mut reader).await, Err(ChangesLost::Gap));
    let mut reader = reached(&there, &here, &tenant).await;
    let run = new_run(None);
    open(&here, &tenant, &run, false).await.unwrap();
    // The replica that publishes may notice the outage later than the one that reads.
    until(Ok(change_of(&run)), async || {
        let change = next(&mut reader).await;
        if change.is_err() {
            reader = reached(&there, &here, &tenant).await;
            open(&here, &tenant, &run, false).await.unwrap();
        }
        change
    })
    .await;
    close([&here, &there]).await;
}

#[tokio::test]
async fn a_reader_gets_an_error_for_changes_that_cannot_be_read() {
    let Some((server, here, there, tenant)) = private_replicas(EXPIRY).await else {
        return;
    };
    let mut reader = reached(&there, &here, &tenant).await;
    let receivers = server.command(&["PUBLISH", "agent-runtime:feed", "[]"]);
    assert_ne!(receivers, ":0");
    assert_eq!(next(&mut reader).await, Err(ChangesLost::Gap));
    let mut reader = reached(&there, &here, &tenant).await;
    let run = new_run(None);
    open(&here, &tenant, &run, false).await.unwrap();
    assert_eq!(next(&mut reader).await, Ok(change_of(&run)));
    close([&here, &there]).await;
}
