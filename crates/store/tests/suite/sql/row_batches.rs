//! Reads of large sessions that wait for processors of their tenant leave connections to others.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join, join_all};
use store::{StoreSettings, open};
use test_support::databases::{Engine, TestDatabase};
use test_support::drafts::tenant;
use test_support::noise::noise;
use test_support::processors::HeldProcessors;
use test_support::wait::until;
use values::session::Bundle;

use crate::fixtures::Fixture;

const SESSIONS: usize = 96;

/// Connections that hold a result which the store does not read on.
const STUCK: &str = "select count(*) from pg_stat_activity
    where datname = current_database() and state = 'active' and wait_event = 'ClientWrite'";

/// A line of sessions with some 72 MiB of stored messages: more than what is buffered here and in
/// the system, whose sockets receive up to 32 MiB ahead.
async fn large_line(fixture: &Fixture) -> Arc<Bundle> {
    let mut tip = None;
    for number in 0..SESSIONS {
        let commit = fixture.commit(tip.as_ref(), &[&noise(number, 1 << 20)]);
        tip = Some(fixture.publish(&commit).await);
    }
    tip.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_that_wait_for_processors_leave_connections_to_other_tenants() {
    const READS: usize = 2;
    let Some(mut fixture) = Fixture::new(Engine::Postgres).await else {
        return;
    };
    fixture.tenant = tenant("reader-of-much");
    let tip = large_line(&fixture).await;
    let settings = StoreSettings {
        acquire_timeout: Duration::from_secs(5),
        ..TestDatabase::settings()
    };
    let (store, tenant_of_much, session_id) = (
        open(fixture.database.url(), settings).await.unwrap(),
        &fixture.tenant,
        tip.head.session_id,
    );
    let held = HeldProcessors::of(tenant_of_much).await;
    let verifying = join_all((0..READS).map(|_| store.session_verify(tenant_of_much, session_id)));
    let loading = join_all((0..READS).map(|_| store.bundle_load(tenant_of_much, session_id)));
    let mut reading = pin!(join(verifying, loading));
    let other = tenant("reader-of-little");
    let others = async {
        until("no read waits for processors", async || {
            fixture.database.number(STUCK).await > 0
        })
        .await;
        // Each waits for a connection behind those reads, so all of them have begun in the end.
        for _ in 0..50 {
            assert_eq!(store.session_lookup(&other, session_id).await.unwrap(), None);
        }
        // Half of the four connections may wait, and one tenant may have half of those. Other reads
        // return their connections once they have read as much.
        let mut alone = 0;
        until("more than one read waits with its connection", async || {
            let stuck = fixture.database.number(STUCK).await;
            alone = if stuck == 1 { alone + 1 } else { 0 };
            alone >= 20
        })
        .await;
    };
    tokio::select! {
        ended = &mut reading => panic!("{:?}", ended.0),
        () = others => (),
    }
    drop(held);
    let (reports, bundles) = reading.await;
    for report in reports {
        let report = report.unwrap().unwrap();
        let sessions = SESSIONS as u64;
        assert_eq!(
            (report.sessions, report.messages, report.faults),
            (sessions, sessions, vec![])
        );
    }
    for bundle in bundles {
        assert_eq!(bundle.unwrap().unwrap(), *tip);
    }
    store.close().await;
}
