//! Revocations of tokens.

use async_trait::async_trait;
use serde_json::json;

use super::audit::record;
use super::connection::Ended;
use super::engine::Engine;
use super::statement::Statement;
use crate::audit::{Act, AuditAction, Requester};
use crate::error::StoreError;
use crate::rows::{TokenRevocationRow, values};
use crate::token_revocations::{TokenRevocation, TokenRevocationStore};
use values::clock::Timestamp;

const OPERATION: &str = "revoke tokens";

#[async_trait]
impl<E: Engine> TokenRevocationStore for E {
    async fn token_revocation_put(
        &self,
        revocation: &TokenRevocation,
        expired: Timestamp,
        by: &Requester,
    ) -> Result<(), StoreError> {
        // A subject may have tokens for several tenants.
        let act = Act::of_service(by, AuditAction::TokensRevoked, revocation.subject.as_str())
            .with("issuer", revocation.issuer.as_str())
            .with("issued_before", json!(revocation.issued_before));
        let revocation = revocation.clone();
        let putting = self.transact(OPERATION, move |mut connection| {
            Box::pin(async move {
                record(&mut connection, &act).await?;
                let statement = "insert into token_revocations (issued_before, issuer, subject)
                    values ($1, $2, $3)
                    on conflict (issuer, subject) do update
                    set issued_before = excluded.issued_before
                    where token_revocations.issued_before < excluded.issued_before";
                let values = values![revocation.issued_before, &revocation.issuer, &revocation.subject];
                connection
                    .execute(Statement::with(OPERATION, statement, values))
                    .await?;
                let statement = "delete from token_revocations where issued_before < $1";
                let delete = Statement::with(OPERATION, statement, values![expired]);
                connection.execute(delete).await?;
                Ok(Ended::Committed(()))
            })
        });
        putting.await
    }

    async fn token_revocation_list(&self) -> Result<Vec<TokenRevocation>, StoreError> {
        let statement = "select issued_before, issuer, subject from token_revocations
            order by issuer, subject";
        let select = Statement::new("list revocations of tokens", statement);
        select.list::<TokenRevocationRow, _>(self).await
    }
}
