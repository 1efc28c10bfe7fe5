//! A removal of a tenant removes all of its keys from the server, and none of others.

use test_support::live_run::new_run;
use test_support::redis_server::EXPIRY;

use crate::{append, close, new_session_id, new_tenant, open, private_replicas, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_leaves_nothing_on_the_server() {
    let Some((mut server, here, there, tenant)) = private_replicas(EXPIRY).await else {
        return;
    };
    let other = new_tenant();
    let keys = || server.command(&["DBSIZE"]);
    for tenant in [&tenant, &other] {
        for _ in 0..2 {
            let run = new_run(Some(new_session_id()));
            open(&here, tenant, &run, true).await.unwrap();
            append(&here, tenant, &run, 1..=3, "a");
        }
    }
    // Each run has a hash, its session, its base and its events; each tenant has an index.
    until(":18".to_owned(), async || keys()).await;
    // A process that still lives would write again.
    here.close().await;
    assert_eq!(there.tenant_remove(&tenant).await.unwrap(), 9);
    assert_eq!(keys(), ":9");
    assert_eq!(there.tenant_remove(&tenant).await.unwrap(), 0);
    assert_eq!(there.run_list(&tenant).await, []);
    assert_eq!(there.run_list(&other).await.len(), 2);
    // Many steps of a scan.
    let fill = format!(
        "for i = 1, 5000 do redis.call('SET', 'agent-runtime:{tenant}:session:' .. i, i) redis.call('SET', 'x' .. i, i) end"
    );
    server.command(&["EVAL", &fill, "0"]);
    assert_eq!(there.tenant_remove(&tenant).await.unwrap(), 5_000);
    assert_eq!(keys(), ":5009");
    server.stop();
    there.tenant_remove(&tenant).await.unwrap_err();
    close([&here, &there]).await;
}
