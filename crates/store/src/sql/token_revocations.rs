//! Revocations of tokens.

use async_trait::async_trait;

use super::engine::Engine;
use super::statement::Statement;
use crate::error::StoreError;
use crate::rows::{TokenRevocationRow, values};
use crate::token_revocations::{TokenRevocation, TokenRevocationStore};
use values::clock::Timestamp;

#[async_trait]
impl<E: Engine> TokenRevocationStore for E {
    async fn token_revocation_put(&self, revocation: &TokenRevocation, expired: Timestamp) -> Result<(), StoreError> {
        let statement = "insert into token_revocations (issued_before, issuer, subject)
            values ($1, $2, $3)
            on conflict (issuer, subject) do update
            set issued_before = excluded.issued_before
            where token_revocations.issued_before < excluded.issued_before";
        let values = values![revocation.issued_before, &revocation.issuer, &revocation.subject];
        let insert = Statement::with("revoke tokens", statement, values);
        insert.execute(self).await?;
        let statement = "delete from token_revocations where issued_before < $1";
        let delete = Statement::with("remove expired revocations", statement, values![expired]);
        delete.execute(self).await?;
        Ok(())
    }

    async fn token_revocation_list(&self) -> Result<Vec<TokenRevocation>, StoreError> {
        let statement = "select issued_before, issuer, subject from token_revocations
            order by issuer, subject";
        let select = Statement::new("list revocations of tokens", statement);
        select.list::<TokenRevocationRow, _>(self).await
    }
}
