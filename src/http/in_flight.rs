//! Limits the bytes in flight: of responses, and of request bodies until they are decoded.
//!
//! All requests of the process share one budget, fairly by tenant (`fair_share.rs`). A response
//! takes its share before it is built, and returns it with its last byte.
//!
//! - A request that reads waits up to 5 seconds for its share, and is then refused. It holds no
//!   data while it waits, and reads them again afterwards. It takes one share for everything that
//!   it reads.
//! - Results of runs, events and the rest of a session wait without a limit.
//! - Results and events of up to 16 KiB do not wait. A list or a session takes at least a page.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use tokio::time::timeout;

use super::codes::ProblemCode;
use super::problem::Problem;
use tasks::fair_share::{FairShare, Share};
use tasks::off_thread::by_size;
use values::tenant::TenantId;

/// The largest response that does not wait for room, in bytes. The number of connections bounds the
/// memory of these.
pub(super) const SMALL: usize = 16 << 10;
/// How long a request that reads waits for room before it is refused.
const PATIENCE: Duration = Duration::from_secs(5);
/// When to retry after such a refusal.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// The memory to read one byte of stored JSON: for the stored bytes, the text and the values.
pub(super) const READING: u64 = 3;

/// The bytes in flight.
#[derive(Debug)]
pub(super) struct InFlight {
    bytes: Arc<FairShare>,
}

/// Bytes that are being sent to a reader, with their share.
struct Held<T> {
    bytes: Bytes,
    _share: T,
}

impl InFlight {
    /// Makes a budget of `max_bytes` bytes.
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            bytes: FairShare::new(max_bytes),
        }
    }

    /// Returns the bytes in flight.
    pub(super) fn taken(&self) -> usize {
        self.bytes.taken()
    }

    /// Waits until there is room for `bytes` bytes.
    pub(super) async fn take(&self, tenant: &TenantId, bytes: usize) -> Share {
        self.bytes.take(tenant, bytes).await
    }

    /// Takes room for `bytes` bytes if it is free now.
    pub(super) fn try_take(&self, tenant: &TenantId, bytes: usize) -> Option<Share> {
        self.bytes.try_take(tenant, bytes)
    }

    /// Waits for room up to [`PATIENCE`], and then refuses the request.
    pub(super) async fn take_soon(&self, tenant: &TenantId, bytes: usize) -> Result<Share, Problem> {
        timeout(PATIENCE, self.take(tenant, bytes)).await.map_err(|_| {
            let words = "other requests and their responses take all the room; read those, or try again";
            Problem::new(ProblemCode::TooMuchInFlight, words).with_retry_after(RETRY_AFTER)
        })
    }
}

/// Returns the memory to read `bytes` bytes of stored JSON.
pub(super) fn reading(bytes: u64) -> usize {
    usize::try_from(bytes.saturating_mul(READING)).unwrap_or(usize::MAX)
}

/// Makes a response, and shrinks its share to the size of its text. The share must not be smaller
/// before.
pub(super) async fn respond_with<T: Serialize + Send + 'static>(
    mut share: Share,
    value: T,
) -> Result<Response, Problem> {
    let encode = move || serde_json::to_vec(&value);
    let text = by_size(share.tenant(), share.amount() as u64, encode).await;
    let text = text.map_err(Problem::internal)?;
    share.set(text.len());
    Ok(json_response(held(text.into(), share)))
}

/// Makes a response of JSON.
pub(super) fn json_response(body: impl Into<Body>) -> Response {
    let json = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (json, body.into()).into_response()
}

/// Ties a share to bytes. It is released when they are sent or dropped.
pub(super) fn held<T: Send + 'static>(bytes: Bytes, share: T) -> Bytes {
    Bytes::from_owner(Held { bytes, _share: share })
}

impl<T> AsRef<[u8]> for Held<T> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
