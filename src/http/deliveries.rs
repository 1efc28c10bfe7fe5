//! `/v1/webhooks/deliveries`: the deliveries of messages that report the ends of runs.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::Api;
use super::auth::Caller;
use super::codes::ProblemCode;
use super::idempotency::{KeyedRequest, mark_replay};
use super::paging::{Cursor, ListPage, take_cursor, take_limit};
use super::parameters::{PathParameters, QueryParameters};
use super::problem::Problem;
use crate::agent::WebhookEvent;
use crate::clock::Timestamp;
use crate::ids::{DeliveryId, RunId};
use crate::record::{DeliveryRecord, DeliveryStatus};
use crate::run::Redelivered;
use crate::store::{DeliveryFilter, Page};

/// A message to a webhook, without its body.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Delivery)]
pub(super) struct DeliveryView {
    /// Names the message; its `webhook-id`.
    delivery_id: DeliveryId,
    /// The run that it reports.
    run_id: RunId,
    /// The event that it reports.
    event: WebhookEvent,
    /// Where it goes.
    url: String,
    /// The name of the secret that signs it.
    secret: Option<String>,
    /// Its status.
    status: DeliveryStatus,
    /// How often it was sent.
    attempts: u32,
    /// The HTTP status of the last response.
    #[schema(minimum = 100, maximum = 999)]
    response_status: Option<u16>,
    /// Why the last attempt failed.
    error: Option<String>,
    /// When the run ended.
    #[schema(value_type = chrono::DateTime<chrono::Utc>)]
    created_at: Timestamp,
    /// When it is sent next; null once it is over.
    #[schema(value_type = Option<chrono::DateTime<chrono::Utc>>)]
    next_attempt_at: Option<Timestamp>,
    /// When it was delivered.
    #[schema(value_type = Option<chrono::DateTime<chrono::Utc>>)]
    delivered_at: Option<Timestamp>,
}

/// A page of messages to webhooks.
type Deliveries = ListPage<DeliveryView>;

/// Lists messages to webhooks, newest first.
#[utoipa::path(get, path = "/v1/webhooks/deliveries", tag = "webhooks", params(
    ("status" = Option<DeliveryStatus>, Query, description = "Only of this status"),
    ("run_id" = Option<uuid::Uuid>, Query, description = "Only of this run"),
    ("limit" = Option<u32>, Query, minimum = 1, maximum = 200, description = "1 to 200, by default 50"),
    ("cursor" = Option<String>, Query, description = "The `next_cursor` of the page before"),
), responses(
    (status = 200, description = "A page of deliveries", body = Deliveries),
))]
pub(super) async fn list_deliveries(
    State(api): State<Arc<Api>>,
    Caller(tenant): Caller,
    mut query: QueryParameters,
) -> Result<Json<Deliveries>, Problem> {
    let filter = DeliveryFilter {
        status: query.parsed("status")?,
        run_id: query.id("run_id")?,
    };
    let limit = take_limit(&mut query)?;
    let before = take_cursor(&mut query, |cursor| match cursor {
        Cursor::Delivery(id) => Some(DeliveryId::from_uuid(id)),
        _ => None,
    })?;
    query.finish()?;
    let page = Page {
        before,
        limit: limit + 1,
    };
    let deliveries = api.service.store.delivery_list(&tenant, &filter, page).await?;
    let cursor = |delivery: &DeliveryRecord| Cursor::Delivery(delivery.delivery_id.as_uuid());
    Ok(Json(ListPage::new(deliveries, limit, cursor, DeliveryView::from)))
}

/// Shows a message to a webhook.
#[utoipa::path(get, path = "/v1/webhooks/deliveries/{delivery_id}", tag = "webhooks", params(
    ("delivery_id" = uuid::Uuid, Path),
), responses(
    (status = 200, description = "The delivery", body = DeliveryView),
))]
pub(super) async fn get_delivery(
    State(api): State<Arc<Api>>,
    Caller(tenant): Caller,
    path: PathParameters,
    query: QueryParameters,
) -> Result<Json<DeliveryView>, Problem> {
    query.finish()?;
    let delivery_id = path.id("delivery_id")?;
    let delivery = api.service.store.delivery_lookup(&tenant, delivery_id).await?;
    let delivery = delivery.ok_or_else(|| delivery_not_found(delivery_id))?;
    Ok(Json(delivery.into()))
}

/// Sends a message to a webhook again, from its first attempt on, even if it was delivered.
#[utoipa::path(post, path = "/v1/webhooks/deliveries/{delivery_id}/redeliver", tag = "webhooks", params(
    ("delivery_id" = uuid::Uuid, Path),
    ("Idempotency-Key" = Option<String>, Header, pattern = "^[!-~]{1,255}$", description = "The caller's name for the request"),
), responses(
    (status = 202, description = "It is sent", body = DeliveryView),
))]
pub(super) async fn redeliver(
    State(api): State<Arc<Api>>,
    Caller(tenant): Caller,
    path: PathParameters,
    query: QueryParameters,
    KeyedRequest(key): KeyedRequest,
) -> Result<Response, Problem> {
    query.finish()?;
    let delivery_id: DeliveryId = path.id("delivery_id")?;
    let redelivered = api
        .service
        .runs
        .redelivery
        .redeliver(&tenant, delivery_id, key.as_ref())
        .await?;
    let Redelivered { delivery, is_replay } = redelivered.ok_or_else(|| delivery_not_found(delivery_id))?;
    let mut response = (StatusCode::ACCEPTED, Json(DeliveryView::from(delivery))).into_response();
    mark_replay(&mut response, is_replay);
    Ok(response)
}

fn delivery_not_found(delivery_id: DeliveryId) -> Problem {
    Problem::new(
        ProblemCode::DeliveryNotFound,
        format!("there is no delivery {delivery_id}"),
    )
}

impl From<DeliveryRecord> for DeliveryView {
    fn from(delivery: DeliveryRecord) -> Self {
        Self {
            delivery_id: delivery.delivery_id,
            run_id: delivery.run_id,
            event: delivery.event,
            url: delivery.url,
            secret: delivery.secret,
            status: delivery.status,
            attempts: delivery.attempts,
            response_status: delivery.response_status,
            error: delivery.error,
            created_at: delivery.created_at,
            next_attempt_at: delivery.due_at,
            delivered_at: delivery.delivered_at,
        }
    }
}
