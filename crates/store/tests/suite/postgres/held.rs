//! Transactions on PostgreSQL that stay open, so that others meet them.

use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use test_support::wait::until;
use uuid::Uuid;
use values::ids::RunId;
use values::session::Bundle;

use crate::fixtures::Fixture;

/// The run of [`Held::accepting`].
pub(crate) const RIVAL: Uuid = Uuid::from_u128(0x0190_d9b4_5a00_7000_8000_0000_0000_0001);

/// A transaction that is open until the test ends it.
pub(crate) struct Held(PgConnection);

impl Held {
    pub(crate) async fn begin(fixture: &Fixture, statements: &str) -> Self {
        let mut connection = PgConnection::connect(fixture.database.url()).await.unwrap();
        let begin = format!("begin; {statements}");
        sqlx::raw_sql(AssertSqlSafe(begin))
            .execute(&mut connection)
            .await
            .unwrap();
        Self(connection)
    }

    /// A removal that has removed the session, and has not ended.
    pub(crate) async fn removing(fixture: &Fixture, bundle: &Bundle) -> Self {
        let id = bundle.head.session_id;
        let delete = format!(
            "select 1 from sessions where session_id = '{id}' for update; delete from sessions where session_id = '{id}'"
        );
        Self::begin(fixture, &delete).await
    }

    /// A commit that continues the session, and has not ended.
    pub(crate) async fn continuing(fixture: &Fixture, bundle: &Bundle) -> Self {
        let id = bundle.head.session_id;
        Self::begin(
            fixture,
            &format!("select 1 from sessions where session_id = '{id}' for share"),
        )
        .await
    }

    /// An open transaction of a replica that accepts a run on the thread: the run is active there,
    /// or waits for the active one.
    pub(crate) async fn accepting(fixture: &Fixture, thread: &str, is_held: bool) -> Self {
        let insert = format!(
            "select 1 from run_queue where tenant = '{tenant}' and thread = '{thread}' and not is_held for key share;
            insert into run_queue (
                tenant, run_id, thread, is_held, turn, enqueued_at, priority, schema_version, encoding, request)
            values ('{tenant}', '{RIVAL}', '{thread}', {is_held}, 1, now(), 0, 1, 0, '')",
            tenant = fixture.tenant
        );
        Self::begin(fixture, &insert).await
    }

    /// A takeover of the run by another worker that has not ended.
    pub(crate) async fn taking_over(fixture: &Fixture, run_id: RunId) -> Self {
        let lease = format!("update run_queue set fence = fence + 1 where run_id = '{run_id}'");
        Self::begin(fixture, &lease).await
    }

    /// Goes on with another statement.
    pub(crate) async fn execute(&mut self, statement: &'static str) {
        sqlx::raw_sql(statement).execute(&mut self.0).await.unwrap();
    }

    pub(crate) async fn end(mut self, how: &'static str) {
        self.execute(how).await;
    }
}

/// Tells whether so many statements stand still for a lock.
pub(crate) async fn is_waiting(fixture: &Fixture, count: i64) -> bool {
    fixture.database.waiting_clients().await == count
}

/// Waits until so many statements stand still for a lock.
pub(crate) async fn until_waiting(fixture: &Fixture, count: i64) {
    until("so many statements never wait for a lock", async || {
        is_waiting(fixture, count).await
    })
    .await;
}
