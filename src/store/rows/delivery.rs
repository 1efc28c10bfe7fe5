//! Rows of `webhook_deliveries`: the record in lists, and the message beside it.

use uuid::Uuid;

use super::{PayloadRow, RowName, StoredTime, from_row};
use crate::agent::WebhookEvent;
use crate::ids::{DeliveryId, RunId};
use crate::record::{DeliveryRecord, DeliveryStatus};
use crate::store::codec::decode_delivery;
use crate::store::error::StoreError;
use crate::store::outbox::DueDelivery;
use crate::tenant::ParseTenantError;

/// A delivery without its message.
#[derive(Debug)]
pub(crate) struct DeliveryRow {
    delivery_id: Uuid,
    run_id: Uuid,
    event: String,
    url: String,
    secret: Option<String>,
    status: String,
    attempts: i32,
    response_status: Option<i32>,
    error: Option<String>,
    created_at: StoredTime,
    due_at: Option<StoredTime>,
    delivered_at: Option<StoredTime>,
}

from_row!(DeliveryRow {
    delivery_id,
    run_id,
    event,
    url,
    secret,
    status,
    attempts,
    response_status,
    error,
    created_at,
    due_at,
    delivered_at,
});

impl TryFrom<DeliveryRow> for DeliveryRecord {
    type Error = StoreError;

    fn try_from(row: DeliveryRow) -> Result<Self, StoreError> {
        let name = RowName::new("webhook_deliveries", &row.delivery_id);
        let event = WebhookEvent::ALL.into_iter().find(|event| event.as_str() == row.event);
        let status = row.status.parse::<DeliveryStatus>();
        let response_status = row.response_status.map(u16::try_from).transpose();
        Ok(Self {
            delivery_id: DeliveryId::from_uuid(row.delivery_id),
            run_id: RunId::from_uuid(row.run_id),
            event: event.ok_or_else(|| name.corrupt("event", format!("{:?} is no event", row.event)))?,
            status: status.map_err(|error| name.corrupt("status", error))?,
            attempts: u32::try_from(row.attempts).map_err(|error| name.corrupt("attempts", error))?,
            response_status: response_status.map_err(|error| name.corrupt("response_status", error))?,
            url: row.url,
            secret: row.secret,
            error: row.error,
            created_at: row.created_at.0,
            due_at: row.due_at.map(|time| time.0),
            delivered_at: row.delivered_at.map(|time| time.0),
        })
    }
}

/// A delivery with its message.
#[derive(Debug)]
pub(crate) struct DueDeliveryRow {
    tenant: String,
    delivery: DeliveryRow,
    payload: PayloadRow<Vec<u8>>,
}

from_row!(DueDeliveryRow {
    tenant;
    delivery,
    payload
});

impl TryFrom<DueDeliveryRow> for DueDelivery {
    type Error = StoreError;

    fn try_from(row: DueDeliveryRow) -> Result<Self, StoreError> {
        let name = RowName::new("webhook_deliveries", &row.delivery.delivery_id);
        Ok(Self {
            tenant: row
                .tenant
                .parse()
                .map_err(|error: ParseTenantError| name.corrupt("tenant", error))?,
            body: decode_delivery(row.payload.stored()).map_err(|error| name.undecodable("payload", error))?,
            record: row.delivery.try_into()?,
        })
    }
}
