//! JSON responses whose size is known once they are made.

use axum::response::Response;
use serde::Serialize;

use super::auth::Call;
use super::in_flight::{SMALL, held, json_response};
use super::problem::Problem;
use tasks::off_thread::by_size;

/// Responds with JSON. A large response waits for room, and is never refused. `weight` is about its
/// size in memory.
pub(super) async fn json_with_room<T: Serialize + Send + 'static>(
    call: &Call,
    value: T,
    weight: usize,
) -> Result<Response, Problem> {
    let encode = move || serde_json::to_vec(&value);
    let text = by_size(&call.tenant, weight as u64, encode).await;
    let text = text.map_err(Problem::internal)?;
    if text.len() <= SMALL {
        return Ok(json_response(text));
    }
    let share = call.api.in_flight.take(&call.tenant, text.len()).await;
    Ok(json_response(held(text.into(), share)))
}
