//! Sends webhook messages again. The outbox sends them.

use super::context::{RunContext, stored_key};
use super::refusal::Refusal;
use super::request::RequestKey;
use agent::record::DeliveryRecord;
use store::audit::Requester;
use store::outbox::Restarted;
use values::ids::DeliveryId;
use values::tenant::TenantId;

/// A message that is sent again.
#[derive(Debug)]
pub struct Redelivered {
    /// The current record of the message.
    pub delivery: DeliveryRecord,
    /// Whether an earlier request with the same key already caused this.
    pub is_replay: bool,
}

/// Makes a message due again and resets its attempts, also if it was delivered. Returns the
/// message, if it exists. A repeated request sends nothing and returns the current record.
pub async fn redeliver(
    ctx: &RunContext,
    tenant: &TenantId,
    delivery_id: DeliveryId,
    key: Option<&RequestKey>,
    by: &Requester,
) -> Result<Option<Redelivered>, Refusal> {
    let store = &ctx.store;
    let claim = key.map(|key| stored_key(ctx, key));
    let restarted = store.delivery_restart(tenant, delivery_id, claim.as_ref(), by).await?;
    let (delivery, is_replay) = match restarted {
        Restarted::Now(delivery) => {
            ctx.outbox.notify_one();
            (Some(delivery), false)
        }
        Restarted::Known(known) => {
            key.map_or(Ok(()), |key| key.check(known.digest))?;
            (store.delivery_lookup(tenant, delivery_id).await?, true)
        }
        Restarted::Missing => (None, false),
    };
    Ok(delivery.map(|delivery| Redelivered { delivery, is_replay }))
}
