//! Deliveries as rows, put into the outbox past the store.

use std::fmt::Write as _;

use agent::record::{NewDelivery, receiver_of};
use values::clock::Timestamp;
use values::ids::RunId;

use crate::databases::{Engine, TestDatabase};

/// Puts a message into the outbox of the tenant `acme`, due when it was written.
pub async fn insert(database: &TestDatabase, run_id: RunId, delivery: &NewDelivery) {
    insert_of("acme", database, run_id, delivery).await;
}

/// Puts a message into the outbox of a tenant, due when it was written.
pub async fn insert_of(tenant: &str, database: &TestDatabase, run_id: RunId, delivery: &NewDelivery) {
    let insert = insertion_of(tenant, database, run_id, delivery);
    database.execute(&insert).await.unwrap();
}

/// Returns the statement that does this.
pub fn insertion_of(tenant: &str, database: &TestDatabase, run_id: RunId, delivery: &NewDelivery) -> String {
    let text = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let id = |id: uuid::Uuid| match database.engine {
        Engine::Postgres => format!("'{id}'"),
        Engine::Sqlite => format!("x'{}'", id.simple()),
    };
    let hex = delivery.body.bytes().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    });
    let payload = match database.engine {
        Engine::Postgres => format!(r"'\x{hex}'"),
        Engine::Sqlite => format!("x'{hex}'"),
    };
    let at = time(database, delivery.created_at);
    format!(
        "insert into webhook_deliveries (
            tenant, delivery_id, run_id, event, url, receiver, secret, traceparent, status, created_at, due_at,
            schema_version, encoding, payload)
        values ('{tenant}', {}, {}, {}, {}, {}, {}, {}, 'pending', {at}, {at}, 1, 0, {payload})",
        id(delivery.delivery_id.as_uuid()),
        id(run_id.as_uuid()),
        text(delivery.event.as_str()),
        text(&delivery.url),
        text(&receiver_of(&delivery.url)),
        delivery.secret.as_deref().map_or("null".to_owned(), text),
        delivery
            .trace
            .map_or("null".to_owned(), |trace| text(&trace.to_string())),
    )
}

fn time(database: &TestDatabase, time: Timestamp) -> String {
    match database.engine {
        Engine::Postgres => format!("'{}'", time.to_rfc3339()),
        Engine::Sqlite => time.timestamp_micros().to_string(),
    }
}
