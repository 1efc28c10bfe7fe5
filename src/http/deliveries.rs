//! `/v1/webhooks/deliveries`: the deliveries of messages that report the ends of runs.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};

use super::auth::Call;
use super::codes::ProblemCode;
use super::idempotency::{KeyedRequest, mark_replay};
use super::paging::{ListPage, Paging};
use super::parameters::{NoParameters, PathParameters, QueryParameters};
use super::problem::Problem;
use crate::run::{self, Redelivered};
use agent::record::{DeliveryRecord, DeliveryStatus};
use store::outbox::DeliveryFilter;
use values::ids::DeliveryId;

/// A page of messages to webhooks.
type Deliveries = ListPage<DeliveryRecord>;

/// Lists messages to webhooks, newest first.
#[utoipa::path(get, path = "/v1/webhooks/deliveries", tag = "webhooks", params(
    ("status" = Option<DeliveryStatus>, Query, description = "Only of this status"),
    ("run_id" = Option<uuid::Uuid>, Query, description = "Only of this run"),
    ("limit" = Option<u32>, Query), ("cursor" = Option<String>, Query),
), responses(
    (status = 200, description = "A page of deliveries", body = Deliveries),
))]
pub(super) async fn list_deliveries(call: Call, mut query: QueryParameters) -> Result<Json<Deliveries>, Problem> {
    let filter = DeliveryFilter {
        status: query.parsed("status")?,
        run_id: query.id("run_id")?,
    };
    let page = Paging::<DeliveryId>::take(query)?;
    let list = call
        .api
        .runs
        .store
        .delivery_list(&call.tenant, &filter, page.one_more());
    Ok(page.page(list.await?, |delivery| delivery.delivery_id))
}

/// Shows a message to a webhook.
#[utoipa::path(get, path = "/v1/webhooks/deliveries/{delivery_id}", tag = "webhooks", params(
    ("delivery_id" = uuid::Uuid, Path),
), responses(
    (status = 200, description = "The delivery", body = DeliveryRecord),
), extensions(("x-problems" = json!([ProblemCode::DeliveryNotFound]))))]
pub(super) async fn get_delivery(
    call: Call,
    path: PathParameters,
    _: NoParameters,
) -> Result<Json<DeliveryRecord>, Problem> {
    let delivery_id = path.id("delivery_id")?;
    let delivery = call.api.runs.store.delivery_lookup(&call.tenant, delivery_id).await?;
    let delivery = delivery.ok_or_else(|| delivery_not_found(delivery_id))?;
    Ok(Json(delivery))
}

/// Sends a message to a webhook again, from its first attempt on, even if it was delivered.
#[utoipa::path(post, path = "/v1/webhooks/deliveries/{delivery_id}/redeliver", tag = "webhooks", params(
    ("delivery_id" = uuid::Uuid, Path),
    ("Idempotency-Key" = Option<String>, Header),
), responses(
    (status = 202, description = "It is sent", body = DeliveryRecord),
), extensions(("x-problems" = json!([ProblemCode::DeliveryNotFound]))))]
pub(super) async fn redeliver(
    call: Call,
    path: PathParameters,
    query: QueryParameters,
    KeyedRequest(key): KeyedRequest,
) -> Result<Response, Problem> {
    query.finish()?;
    let delivery_id: DeliveryId = path.id("delivery_id")?;
    let by = call.requester();
    let redelivered = run::redeliver(&call.api.runs, &call.tenant, delivery_id, key.as_ref(), &by).await?;
    let Redelivered {
        mut delivery,
        is_replay,
    } = redelivered.ok_or_else(|| delivery_not_found(delivery_id))?;
    if !call.may_read() {
        delivery.url.clear();
        delivery.error = None;
    }
    let mut response = (StatusCode::ACCEPTED, Json(delivery)).into_response();
    mark_replay(&mut response, is_replay);
    Ok(response)
}

fn delivery_not_found(delivery_id: DeliveryId) -> Problem {
    Problem::new(
        ProblemCode::DeliveryNotFound,
        format!("there is no delivery {delivery_id}"),
    )
}
