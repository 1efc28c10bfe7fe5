//! Events as they are sent. A large one is encoded once for all who read it at the time, and counted once among the bytes in flight:
//! a thousand readers of a run of ten megabytes share its last event.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use axum::body::Bytes;
use tokio::sync::OnceCell;

use super::events::encode;
use crate::fair_share::Share;
use crate::http::in_flight::{InFlight, held};
use crate::record::{RunEvent, event_weight};
use crate::tenant::TenantId;

/// From which weight on an event is encoded once.
const LARGE: usize = 16 << 10;
/// What encoding an event takes for each byte of it: the last one has its text twice, and it is copied to be encoded.
const ENCODING: usize = 4;

/// Large events that are being sent.
#[derive(Debug, Default)]
pub(in crate::http) struct Frames {
    /// By the address of the event, which its frame keeps alive.
    sent: Arc<Sent>,
}

type Sent = Mutex<HashMap<usize, Weak<Frame>>>;

#[derive(Debug)]
struct Frame {
    event: Arc<RunEvent>,
    sent: Arc<Sent>,
    encoded: OnceCell<(Bytes, Share)>,
}

impl Frames {
    /// Encodes an event, unless that was done for another reader who still reads it.
    pub(super) async fn encode(&self, in_flight: &InFlight, tenant: &TenantId, event: &Arc<RunEvent>) -> Bytes {
        let weight = event_weight(&event.payload);
        if weight < LARGE {
            return encode(event).into();
        }
        let frame = self.frame(event);
        let encoding = async {
            let mut share = in_flight.take(tenant, weight * ENCODING).await;
            let bytes: Bytes = encode(event).into();
            share.set(bytes.len());
            (bytes, share)
        };
        let (bytes, _) = frame.encoded.get_or_init(|| encoding).await;
        held(bytes.clone(), Arc::clone(&frame))
    }

    fn frame(&self, event: &Arc<RunEvent>) -> Arc<Frame> {
        let mut sent = lock(&self.sent);
        let address = Arc::as_ptr(event).addr();
        if let Some(frame) = sent.get(&address).and_then(Weak::upgrade) {
            return frame;
        }
        let frame = Arc::new(Frame {
            event: Arc::clone(event),
            sent: Arc::clone(&self.sent),
            encoded: OnceCell::new(),
        });
        sent.insert(address, Arc::downgrade(&frame));
        frame
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        let address = Arc::as_ptr(&self.event).addr();
        let mut sent = lock(&self.sent);
        // Another reader may have come since.
        if sent.get(&address).is_some_and(|frame| frame.strong_count() == 0) {
            sent.remove(&address);
        }
    }
}

fn lock(sent: &Sent) -> MutexGuard<'_, HashMap<usize, Weak<Frame>>> {
    // Each change is a single call of the map.
    sent.lock().unwrap_or_else(PoisonError::into_inner)
}
