//! Limits the memory of large requests that agents send to models and webhooks.
//!
//! Requests to models stay in memory until the model responds, since they may be sent again.
//! Requests of more than 64 KiB share `runs.max_model_request_bytes`, fairly by tenant.

use std::sync::Arc;

use tasks::fair_share::{FairShare, Share};
use values::tenant::TenantId;

/// The largest request that takes no room, in bytes. The number of runs bounds the memory of these.
const SMALL: usize = 64 << 10;

/// The memory for large requests in flight, shared fairly by tenants. A holder of a share never
/// waits for another.
#[derive(Debug, Clone)]
pub struct RequestRoom(Arc<FairShare>);

impl RequestRoom {
    /// Makes room for `bytes` bytes in total.
    pub fn new(bytes: usize) -> Self {
        Self(FairShare::new(bytes))
    }

    /// Waits until there is room for a request of `bytes` bytes. A small request does not wait.
    pub async fn take(&self, tenant: &TenantId, bytes: usize) -> Option<Share> {
        if bytes <= SMALL {
            return None;
        }
        Some(self.0.take(tenant, bytes).await)
    }

    /// Returns how many bytes are taken.
    pub fn taken(&self) -> usize {
        self.0.taken()
    }
}
