//! Writes the ends of the chains of the audit log to the log of the process. So a chain that
//! somebody cut in the database, with its head, is noticed by comparison.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use store::{Outage, Store};

/// How often the ends are written.
const INTERVAL: Duration = Duration::from_hours(24);
/// The pause after the store could not be read.
const RETRY_PAUSE: Duration = Duration::from_mins(1);

/// Writes the ends of all chains now and once a day, but only those that have changed since.
pub async fn log_heads(store: Arc<dyn Store>, stop: CancellationToken) {
    let (mut logged, mut outage) = (HashMap::new(), Outage::default());
    loop {
        let heads = store.audit_heads().await;
        outage.note("the ends of the audit log are not logged", &heads);
        let pause = if heads.is_ok() { INTERVAL } else { RETRY_PAUSE };
        for head in heads.unwrap_or_default() {
            let chain = head.chain.to_string();
            if logged.insert(chain.clone(), head.number) != Some(head.number) {
                tracing::info!(chain, number = head.number, hash = %head.hash, "the audit log ends here");
            }
        }
        if stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
            return;
        }
    }
}
