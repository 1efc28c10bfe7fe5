//! Sessions of the console.

use async_trait::async_trait;

use super::audit::record;
use super::connection::Ended;
use super::engine::Engine;
use super::statement::Statement;
use crate::audit::{Act, AuditAction, Requester};
use crate::console_sessions::{ConsoleSession, ConsoleSessionStore};
use crate::error::StoreError;
use crate::rows::{ConsoleSessionRow, values};
use values::clock::Timestamp;
use values::session::Hash;

#[async_trait]
impl<E: Engine> ConsoleSessionStore for E {
    async fn console_session_insert(
        &self,
        session: &ConsoleSession,
        limit: u32,
        by: &Requester,
    ) -> Result<(), StoreError> {
        const OPERATION: &str = "insert console session";
        let act = Act::of(
            &session.tenant,
            by,
            AuditAction::BrowserLoggedIn,
            session.key_id.to_string(),
        );
        let session = session.clone();
        let inserting = self.transact(OPERATION, move |mut connection| {
            Box::pin(async move {
                record(&mut connection, &act).await?;
                let statement = "insert into console_sessions (secret_hash, key_id, tenant, created_at, expires_at)
                    values ($1, $2, $3, $4, $5)";
                let values = values![
                    &session.secret_hash,
                    session.key_id,
                    &session.tenant,
                    session.created_at,
                    session.expires_at
                ];
                connection
                    .execute(Statement::with(OPERATION, statement, values))
                    .await?;
                let statement = "delete from console_sessions
                    where key_id = $1 and secret_hash not in (
                        select secret_hash from console_sessions
                        where key_id = $1
                        order by created_at desc, secret_hash
                        limit $2)";
                let delete = Statement::with(OPERATION, statement, values![session.key_id, limit]);
                connection.execute(delete).await?;
                Ok(Ended::Committed(()))
            })
        });
        inserting.await
    }

    async fn console_session_lookup(&self, secret_hash: Hash) -> Result<Option<ConsoleSession>, StoreError> {
        let statement =
            "select s.secret_hash, s.key_id, k.secret_hash as key_hash, s.tenant, s.created_at, s.expires_at
            from console_sessions s join api_keys k on k.key_id = s.key_id
            where s.secret_hash = $1";
        let select = Statement::with("look up console session", statement, values![&secret_hash]);
        select.find::<ConsoleSessionRow, _>(self).await
    }

    async fn console_session_extend(&self, secret_hash: Hash, expires_at: Timestamp) -> Result<(), StoreError> {
        let statement = "update console_sessions set expires_at = $2 where secret_hash = $1 and expires_at < $2";
        let update = Statement::with("extend console session", statement, values![&secret_hash, expires_at]);
        update.execute(self).await?;
        Ok(())
    }

    async fn console_session_delete(&self, session: &ConsoleSession, by: &Requester) -> Result<(), StoreError> {
        const OPERATION: &str = "delete console session";
        let act = Act::of(
            &session.tenant,
            by,
            AuditAction::BrowserLoggedOut,
            session.key_id.to_string(),
        );
        let secret_hash = session.secret_hash;
        let deleting = self.transact(OPERATION, move |mut connection| {
            Box::pin(async move {
                record(&mut connection, &act).await?;
                let statement = "delete from console_sessions where secret_hash = $1";
                let delete = Statement::with(OPERATION, statement, values![&secret_hash]);
                Ok(match connection.execute(delete).await? {
                    0 => Ended::RolledBack(()),
                    _ => Ended::Committed(()),
                })
            })
        });
        deleting.await
    }
}
