//! Limits the memory that large requests of agents take, to models and to webhooks.
//!
//! Requests to models stay in memory until the model responds, since they may be sent again.
//! Requests of more than 64 KiB share `runs.max_model_request_bytes`, fairly by tenant.

use std::sync::Arc;

use crate::fair_share::{FairShare, Share};
use crate::tenant::TenantId;

/// Up to how many bytes a request takes no room: the runs at work bound those.
const SMALL: usize = 64 << 10;

/// The memory for large requests in flight, shared fairly by tenants. A holder of a share never
/// waits for another.
#[derive(Debug, Clone)]
pub struct RequestRoom(Arc<FairShare>);

impl RequestRoom {
    /// Makes room for so many bytes.
    pub fn new(bytes: usize) -> Self {
        Self(FairShare::new(bytes))
    }

    /// Waits until there is room for a request of so many bytes. A small one waits for none.
    pub async fn take(&self, tenant: &TenantId, bytes: usize) -> Option<Share> {
        if Self::is_small(bytes) {
            return None;
        }
        Some(self.0.take(tenant, bytes).await)
    }

    /// Returns whether a request of so many bytes is too small to count.
    pub fn is_small(bytes: usize) -> bool {
        bytes <= SMALL
    }

    /// Returns how many bytes are taken.
    pub fn taken(&self) -> usize {
        self.0.taken()
    }
}
