//! Rows of `webhook_deliveries`: the record for lists, and separately the message.

use uuid::Uuid;

use super::{PayloadRow, Row, RowName, StoredTime, Value, row, table_row};
use crate::codec::{EncodeError, Payload, decode_delivery, encode_delivery};
use crate::error::StoreError;
use crate::outbox::DueDelivery;
use agent::record::{DeliveryRecord, DeliveryStatus, NewDelivery, receiver_of};
use values::ids::{DeliveryId, RunId};

table_row! {
    columns of "webhook_deliveries";
    /// A delivery without its message.
    #[derive(Debug)]
    pub(crate) struct DeliveryRow {
        delivery_id: Uuid,
        run_id: Option<Uuid>,
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
}

/// An encoded delivery that is due at once.
#[derive(Debug)]
pub(crate) struct NewDeliveryRow {
    row: DeliveryRow,
    receiver: String,
    traceparent: Option<String>,
    payload: Payload,
}

impl NewDeliveryRow {
    /// Encodes a message, of a run if it is about one.
    pub(crate) fn new(run_id: Option<RunId>, delivery: &NewDelivery) -> Result<Self, EncodeError> {
        let created_at = StoredTime(delivery.created_at);
        Ok(Self {
            row: DeliveryRow {
                delivery_id: delivery.delivery_id.as_uuid(),
                run_id: run_id.map(RunId::as_uuid),
                event: delivery.event.as_str().to_owned(),
                url: delivery.url.clone(),
                secret: delivery.secret.clone(),
                status: DeliveryStatus::Pending.as_str().to_owned(),
                attempts: 0,
                response_status: None,
                error: None,
                created_at,
                due_at: Some(created_at),
                delivered_at: None,
            },
            receiver: receiver_of(&delivery.url),
            traceparent: delivery.trace.map(String::from),
            payload: encode_delivery(&delivery.body)?,
        })
    }
}

impl Row for NewDeliveryRow {
    fn visit<'v>(&'v self, column: &mut dyn FnMut(&'static str, Value<'v>)) {
        self.row.visit(column);
        column("receiver", (&self.receiver).into());
        column("traceparent", (&self.traceparent).into());
        self.payload.visit(column);
    }
}

impl TryFrom<DeliveryRow> for DeliveryRecord {
    type Error = StoreError;

    fn try_from(row: DeliveryRow) -> Result<Self, StoreError> {
        let name = RowName::new("webhook_deliveries", &row.delivery_id);
        let response_status = row.response_status.map(u16::try_from).transpose();
        Ok(Self {
            delivery_id: DeliveryId::from_uuid(row.delivery_id),
            run_id: row.run_id.map(RunId::from_uuid),
            event: name.named("event", &row.event)?,
            status: name.parse("status", &row.status)?,
            attempts: name.small_count("attempts", row.attempts)?,
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

row! {
    /// A delivery with its message.
    #[derive(Debug)]
    pub(crate) struct DueDeliveryRow {
        tenant: String,
        traceparent: Option<String>,
        ;
        delivery: DeliveryRow,
        payload: PayloadRow<Vec<u8>>,
    }
}

impl TryFrom<DueDeliveryRow> for DueDelivery {
    type Error = StoreError;

    fn try_from(row: DueDeliveryRow) -> Result<Self, StoreError> {
        let name = RowName::new("webhook_deliveries", &row.delivery.delivery_id);
        Ok(Self {
            tenant: name.parse("tenant", &row.tenant)?,
            // A message without its trace is still a message.
            trace: row.traceparent.and_then(|text| text.parse().ok()),
            body: decode_delivery(row.payload.stored()).map_err(|error| name.undecodable("payload", error))?,
            record: row.delivery.try_into()?,
        })
    }
}
