//! Sessions of the console.

use async_trait::async_trait;

use super::engine::Engine;
use super::statement::Statement;
use crate::console_sessions::{ConsoleSession, ConsoleSessionStore};
use crate::error::StoreError;
use crate::rows::{ConsoleSessionRow, values};
use values::clock::Timestamp;
use values::session::Hash;

#[async_trait]
impl<E: Engine> ConsoleSessionStore for E {
    async fn console_session_insert(&self, session: &ConsoleSession, limit: u32) -> Result<(), StoreError> {
        let statement = "insert into console_sessions (secret_hash, key_id, tenant, created_at, expires_at)
            values ($1, $2, $3, $4, $5)";
        let values = values![
            &session.secret_hash,
            session.key_id,
            &session.tenant,
            session.created_at,
            session.expires_at
        ];
        let insert = Statement::with("insert console session", statement, values);
        insert.execute(self).await?;
        let statement = "delete from console_sessions
            where key_id = $1 and secret_hash not in (
                select secret_hash from console_sessions
                where key_id = $1
                order by created_at desc, secret_hash
                limit $2)";
        let values = values![session.key_id, limit];
        let delete = Statement::with("limit console sessions", statement, values);
        delete.execute(self).await?;
        Ok(())
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

    async fn console_session_delete(&self, secret_hash: Hash) -> Result<(), StoreError> {
        let statement = "delete from console_sessions where secret_hash = $1";
        let delete = Statement::with("delete console session", statement, values![&secret_hash]);
        delete.execute(self).await?;
        Ok(())
    }
}
