//! Contents of workspaces. Splits batches, encodes and decodes on other threads. The statements
//! that write differ between the engines.

use std::collections::{HashMap, HashSet};

use async_trait::async_trait;

use super::engine::Engine;
use super::objects::{ContentFold, put_objects, read_objects};
use super::row_batches::{RowFold, rows_fold};
use super::statement::Statement;
use crate::codec::EncodeError;
use crate::contents::{ContentStore, MAX_BATCH, MAX_BATCH_BYTES, MAX_CONTENT_BYTES};
use crate::error::StoreError;
use crate::rows::{ContentRow, HashList, NewContentRow, values};
use tasks::off_thread::by_size_of;
use values::session::Hash;
use values::tenant::TenantId;
use workspace::{Content, StoredContent};

/// The name of a write in errors.
pub(crate) const PUT: &str = "store contents";
/// The name of a check in errors.
pub(crate) const FIND_MISSING: &str = "look up contents";
const LOAD: &str = "load contents";
const TOTAL: &str = "read the total of contents";

#[async_trait]
impl<E: Engine> ContentStore for E {
    async fn content_put(&self, tenant: &TenantId, contents: &[Content]) -> Result<(), StoreError> {
        if contents.iter().any(|content| content.bytes.len() > MAX_CONTENT_BYTES) {
            return Err(StoreError::failed(PUT)(format!(
                "a content has more than {MAX_CONTENT_BYTES} bytes"
            )));
        }
        check_room(self, tenant, contents).await?;
        let mut rest = contents;
        while !rest.is_empty() {
            let (batch, after) = rest.split_at(batch_length(rest));
            let bytes = batch.iter().map(|content| content.bytes.len() as u64).sum();
            let rows = by_size_of(tenant, bytes, batch, encode).await;
            let rows = put_objects(self, tenant, rows.map_err(StoreError::failed(PUT))?).await?;
            self.contents_insert(tenant, rows).await?;
            rest = after;
        }
        Ok(())
    }

    async fn content_load(&self, tenant: &TenantId, hashes: &[Hash]) -> Result<Vec<Option<Content>>, StoreError> {
        let mut loaded = Vec::with_capacity(hashes.len());
        for batch in hashes.chunks(MAX_BATCH) {
            let Found(found) = contents_fold(self, LOAD, tenant, batch).await?;
            loaded.extend(batch.iter().map(|hash| found.get(hash).cloned()));
        }
        Ok(loaded)
    }

    async fn content_renew(
        &self,
        tenant: &TenantId,
        hashes: &[Hash],
    ) -> Result<HashMap<Hash, StoredContent>, StoreError> {
        let distinct: HashSet<Hash> = hashes.iter().copied().collect();
        let distinct: Vec<Hash> = distinct.into_iter().collect();
        let mut stored = HashMap::with_capacity(distinct.len());
        for batch in distinct.chunks(MAX_BATCH) {
            for row in self.contents_renew(tenant, batch).await? {
                stored.extend([row.decode()?]);
            }
        }
        Ok(stored)
    }

    async fn content_needs_objects(&self) -> Result<bool, StoreError> {
        let statement = "select cast(1 as bigint) from contents where encoding >= 64 limit 1";
        let select = Statement::with("find contents in objects", statement, Vec::new());
        let found: Option<(i64,)> = select.fetch_optional(self).await?;
        Ok(found.is_some())
    }

    async fn content_total(&self, tenant: &TenantId) -> Result<u64, StoreError> {
        let statement = "select bytes from content_totals where tenant = $1";
        let select = Statement::with(TOTAL, statement, values![tenant]);
        let total: Option<(i64,)> = select.fetch_optional(self).await?;
        Ok(total.and_then(|(total,)| u64::try_from(total).ok()).unwrap_or(0))
    }
}

/// Refuses contents for which the tenant has no room. Contents that are stored already take none.
async fn check_room(engine: &impl Engine, tenant: &TenantId, contents: &[Content]) -> Result<(), StoreError> {
    let Some(limit) = engine.content_rules().limits.of(tenant).stored_file_bytes else {
        return Ok(());
    };
    let left = limit.saturating_sub(engine.content_total(tenant).await?);
    let bytes = |content: &Content| content.bytes.len() as u64;
    if contents.iter().map(bytes).sum::<u64>() <= left {
        return Ok(());
    }
    let sizes: HashMap<Hash, u64> = contents.iter().map(|content| (content.hash, bytes(content))).collect();
    let hashes: Vec<Hash> = sizes.keys().copied().collect();
    let missing = engine.content_missing(tenant, &hashes).await?;
    let new: u64 = missing.iter().filter_map(|hash| sizes.get(hash)).sum();
    // A tenant above a lowered limit may still write contents that it has.
    if new == 0 || new <= left {
        return Ok(());
    }
    Err(StoreError::TenantFull { limit })
}

/// Selects contents by their hashes.
pub(super) fn contents_statement<'v, E: Engine>(
    operation: &'static str,
    tenant: &'v TenantId,
    hashes: &'v [Hash],
) -> Statement<'v> {
    let mut select = Statement::with(
        operation,
        "select hash, kind, size, schema_version, encoding, payload from contents where tenant = $1 and hash",
        values![tenant, HashList(hashes)],
    );
    select.push(E::LISTED);
    select
}

/// Reads contents, also those in objects.
pub(super) async fn contents_fold<E: Engine, F: ContentFold>(
    engine: &E,
    operation: &'static str,
    tenant: &TenantId,
    hashes: &[Hash],
) -> Result<F, StoreError> {
    let select = contents_statement::<E>(operation, tenant, hashes);
    read_objects(engine, tenant, rows_fold(engine, tenant, select).await?).await
}

/// Returns how many of the contents one statement writes: at least one.
fn batch_length(contents: &[Content]) -> usize {
    let mut bytes = 0;
    let fits = |content: &&Content| {
        bytes += content.bytes.len();
        bytes <= MAX_BATCH_BYTES
    };
    contents.iter().take(MAX_BATCH).take_while(fits).count().max(1)
}

/// Encodes contents, each once, in the order of their hashes. So statements that write the same
/// rows at once lock them in the same order, and none of them deadlocks.
fn encode(contents: &[Content]) -> Result<Vec<NewContentRow>, EncodeError> {
    let mut contents: Vec<&Content> = contents.iter().collect();
    contents.sort_unstable_by_key(|content| content.hash);
    contents.dedup_by_key(|content| content.hash);
    contents.into_iter().map(NewContentRow::new).collect()
}

/// Decoded contents by their hash.
#[derive(Default)]
struct Found(HashMap<Hash, Content>);

impl RowFold for Found {
    type Row<'r> = ContentRow<'r>;

    fn push_row(&mut self, row: ContentRow<'_>) -> Result<(), StoreError> {
        let content = row.decode()?;
        self.0.insert(content.hash, content);
        Ok(())
    }
}

impl ContentFold for Found {}
