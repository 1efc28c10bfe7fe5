//! The audit log. An entry is inserted in the transaction of its act, which locks the head of the
//! chain first. So entries have no gaps, and acts can't deadlock.

use async_trait::async_trait;
use serde_json::json;

use super::connection::{Connection, Ended};
use super::engine::Engine;
use super::statement::Statement;
use crate::audit::{Act, AuditChain, AuditEntry, AuditHead, AuditRecord, AuditStore, chained, no_hash};
use crate::error::StoreError;
use crate::rows::{AuditChainRow, AuditEntryRow, AuditHeadRow, values};
use values::json::{Object, json_length};
use values::session::Hash;

const OPERATION: &str = "record act";

/// The most bytes of the details of an entry.
const MAX_DETAILS: usize = 8 << 10;

/// A chain whose head the transaction has locked.
pub(crate) struct LockedChain {
    chain: AuditChain,
    number: u64,
    hash: Hash,
}

#[async_trait]
impl<E: Engine> AuditStore for E {
    async fn audit_insert(&self, act: &Act) -> Result<(), StoreError> {
        let act = act.clone();
        let inserting = self.transact(OPERATION, move |mut connection| {
            Box::pin(async move {
                record(&mut connection, &act).await?;
                Ok(Ended::Committed(()))
            })
        });
        inserting.await
    }

    async fn audit_chains(&self) -> Result<Vec<AuditChain>, StoreError> {
        let statement = "select chain from audit_heads where number > 0
            union select chain from audit_entries order by chain";
        let select = Statement::new("list audit chains", statement);
        select.list::<AuditChainRow, _>(self).await
    }

    async fn audit_heads(&self) -> Result<Vec<AuditHead>, StoreError> {
        let statement = "select chain, number, hash from audit_heads where number > 0 order by chain";
        let select = Statement::new("list audit heads", statement);
        select.list::<AuditHeadRow, _>(self).await
    }

    async fn audit_head(&self, chain: &AuditChain) -> Result<AuditHead, StoreError> {
        let statement = "select chain, number, hash from audit_heads where chain = $1";
        let select = Statement::with("look up audit head", statement, values![chain.as_str()]);
        let found = select.find::<AuditHeadRow, _>(self).await?;
        Ok(found.unwrap_or_else(|| AuditHead::of_empty(chain.clone())))
    }

    async fn audit_read(&self, chain: &AuditChain, first: u64, limit: u32) -> Result<Vec<AuditRecord>, StoreError> {
        let statement = "select number, entry, previous_hash, hash from audit_entries
            where chain = $1 and number >= $2
            order by number limit $3";
        let select = Statement::with("read audit log", statement, values![chain.as_str(), first, limit]);
        select.list::<AuditEntryRow, _>(self).await
    }
}

/// Inserts the entry of an act. If the transaction is rolled back, there is no entry.
pub(crate) async fn record(connection: &mut Connection<'_>, act: &Act) -> Result<(), sqlx::Error> {
    let chain = LockedChain::lock(connection, &act.chain).await?;
    chain.append(connection, act).await
}

impl LockedChain {
    /// Waits for the end of other acts in the chain, and locks its head.
    pub(crate) async fn lock(connection: &mut Connection<'_>, chain: &AuditChain) -> Result<Self, sqlx::Error> {
        let statement = "insert into audit_heads (chain, number, hash) values ($1, 0, $2)
            on conflict (chain) do update set number = audit_heads.number
            returning number, hash";
        let genesis = no_hash();
        let lock = Statement::with(OPERATION, statement, values![chain.as_str(), &genesis]);
        let head: Option<(i64, Vec<u8>)> = connection.fetch_optional(lock).await?;
        let (number, hash) = head.ok_or(sqlx::Error::RowNotFound)?;
        let decoded = |error| sqlx::Error::Decode(Box::new(error));
        Ok(Self {
            chain: chain.clone(),
            number: u64::try_from(number).map_err(|error| sqlx::Error::Decode(error.into()))?,
            hash: Hash::try_from(hash.as_slice()).map_err(decoded)?,
        })
    }

    /// Appends the entry of an act.
    pub(crate) async fn append(self, connection: &mut Connection<'_>, act: &Act) -> Result<(), sqlx::Error> {
        let number = self.number + 1;
        let entry = AuditEntry {
            number,
            at: act.by.at,
            tenant: self.chain.tenant().cloned(),
            actor: act.by.actor.clone(),
            action: act.action,
            target: act.target.clone(),
            details: bounded(&act.details).map_err(encoding)?,
            request_id: act.by.request_id.clone(),
            address: act.by.address,
        };
        let text = serde_json::to_string(&entry).map_err(encoding)?;
        let hash = chained(&self.hash, &text);
        let statement = "insert into audit_entries (chain, number, entry, previous_hash, hash)
            values ($1, $2, $3, $4, $5)";
        let values = values![self.chain.as_str(), number, &text, &self.hash, &hash];
        connection
            .execute(Statement::with(OPERATION, statement, values))
            .await?;
        let statement = "update audit_heads set number = $2, hash = $3 where chain = $1";
        let advance = Statement::with(OPERATION, statement, values![self.chain.as_str(), number, &hash]);
        connection.execute(advance).await?;
        Ok(())
    }
}

/// Returns the details of an entry. Of those that are too large, the largest become their sizes.
fn bounded(details: &Object) -> Result<Object, serde_json::Error> {
    let mut bounded = details.clone();
    while serde_json::to_string(&bounded)?.len() > MAX_DETAILS {
        let Some(largest) = bounded.values_mut().max_by_key(json_length) else {
            break;
        };
        *largest = json!({"omitted_bytes": json_length(largest)});
    }
    Ok(bounded)
}

fn encoding(error: serde_json::Error) -> sqlx::Error {
    sqlx::Error::Encode(Box::new(error))
}
