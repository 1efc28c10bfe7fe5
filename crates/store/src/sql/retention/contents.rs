//! Removes contents of workspaces that nothing refers to, one tenant at a time.
//!
//! A tenant has a row in `content_sweeps` from a change on: a run wrote contents, or a removal
//! deleted an environment with files. The tenant is swept at most once in the grace period. The row
//! goes when a sweep has begun more than the grace period after the last change. Later sweeps would
//! find nothing, so they do not read the tenant's contents.
//!
//! This is safe beside commits and writes. A commit refers to contents of two kinds. Contents that
//! its run wrote are younger than the grace period. Contents of the session that it continues, and
//! of the session whose environment it uses, are marked: the commit locks these sessions. So their
//! environments were there when the roots were read, or were committed later under the same rule.
//! The statement that deletes a content checks again that no run has written it.

use std::error::Error;
use std::time::Duration;

use tokio::time::sleep;

use super::Cutoffs;
use super::marking::{OPERATION, unreferenced};
use crate::contents::MAX_BATCH;
use crate::error::StoreError;
use crate::retention::RemovalFigures;
use crate::rows::{HashList, RowName, values};
use crate::sql::{Engine, Statement};
use values::session::Hash;
use values::tenant::TenantId;

/// The pause between two deletions. It leaves most of the time to other removals and, on SQLite, to
/// commits.
const REST: Duration = Duration::from_millis(50);

const DUE: &str = "select tenant from content_sweeps where tenant > $1 and swept_at < $2 order by tenant limit 1";

/// Claims a tenant, so that no other process sweeps it. After a crash, the tenant is due again when
/// the grace period has passed.
const CLAIM: &str = "update content_sweeps set swept_at = $3 where tenant = $1 and swept_at < $2";

/// Forgets a tenant whose last change was long before this sweep.
const SETTLE: &str = "delete from content_sweeps where tenant = $1 and changed_at < $2";

/// Restricts the contents to remove: a run may have written some of them meanwhile.
const STILL_OLD: &str = " and written_at < $3";

/// Sweeps the next tenant after the given one. Returns its name; `None` if no other tenant is due.
pub(super) async fn sweep_contents(
    engine: &impl Engine,
    cutoffs: Cutoffs,
    after: &str,
    limit: i64,
) -> Result<(RemovalFigures, Option<String>), StoreError> {
    let Some(tenant) = next_due(engine, cutoffs, after).await? else {
        return Ok((RemovalFigures::default(), None));
    };
    let claim = Statement::with(OPERATION, CLAIM, values![&tenant, cutoffs.contents, cutoffs.now]);
    let mut figures = RemovalFigures::default();
    if claim.execute(engine).await? > 0 {
        match sweep_tenant(engine, cutoffs, &tenant, limit).await {
            Ok(removed) => figures = removed,
            // Without all links, contents that are needed might be removed.
            Err(error @ StoreError::Corrupt { .. }) => tracing::error!(
                tenant = tenant.as_str(),
                error = &error as &dyn Error,
                "the contents of a tenant can't be swept"
            ),
            Err(error) => return Err(error),
        }
    }
    Ok((figures, Some(tenant.as_str().to_owned())))
}

/// Counts the contents that a sweep would remove now.
pub(super) async fn plan_contents<E: Engine>(
    engine: &E,
    cutoffs: Cutoffs,
    figures: &mut RemovalFigures,
) -> Result<(), StoreError> {
    let mut after = String::new();
    while let Some(tenant) = next_due(engine, cutoffs, &after).await? {
        let found = match unreferenced(engine, &tenant, cutoffs.contents).await {
            Ok(found) => found.hashes,
            Err(StoreError::Corrupt { .. }) => Vec::new(),
            Err(error) => return Err(error),
        };
        for batch in found.chunks(MAX_BATCH) {
            let mut select = Statement::with(
                OPERATION,
                "select count(*), cast(coalesce(sum(length(payload)), 0) as bigint) from contents
                where tenant = $1 and hash",
                values![&tenant, HashList(batch), cutoffs.contents],
            );
            select.push(E::LISTED);
            select.push(STILL_OLD);
            let counted: Option<(i64, i64)> = select.fetch_optional(engine).await?;
            let (count, bytes) = counted.unwrap_or_default();
            figures.contents += u64::try_from(count).unwrap_or(0);
            figures.bytes += u64::try_from(bytes).unwrap_or(0);
        }
        after = tenant.as_str().to_owned();
    }
    Ok(())
}

async fn next_due(engine: &impl Engine, cutoffs: Cutoffs, after: &str) -> Result<Option<TenantId>, StoreError> {
    let select = Statement::with(OPERATION, DUE, values![after, cutoffs.contents]);
    let due: Option<(String,)> = select.fetch_optional(engine).await?;
    due.map(|(tenant,)| RowName::new("content_sweeps", &tenant).parse("tenant", &tenant))
        .transpose()
}

async fn sweep_tenant<E: Engine>(
    engine: &E,
    cutoffs: Cutoffs,
    tenant: &TenantId,
    limit: i64,
) -> Result<RemovalFigures, StoreError> {
    let found = unreferenced(engine, tenant, cutoffs.contents).await?;
    let mut figures = RemovalFigures::default();
    let limit = usize::try_from(limit).map_or(MAX_BATCH, |limit| limit.clamp(1, MAX_BATCH));
    for batch in found.hashes.chunks(limit) {
        if figures != RemovalFigures::default() {
            sleep(REST).await;
        }
        let tallies = engine.remove(vec![deletion::<E>(tenant, batch, cutoffs)], None).await?;
        for tally in tallies {
            figures.contents += tally.add_to(&mut figures);
        }
    }
    // When the run of a journal ends, its files may be unreferenced. No change tells of that.
    if !found.has_journals {
        let settle = Statement::with(OPERATION, SETTLE, values![tenant, cutoffs.settled]);
        settle.execute(engine).await?;
    }
    Ok(figures)
}

/// Deletes contents. Skips contents that a run is writing, so that neither waits for the other
/// while it holds rows.
fn deletion<'v, E: Engine>(tenant: &'v TenantId, hashes: &'v [Hash], cutoffs: Cutoffs) -> Statement<'v> {
    let mut delete = Statement::with(
        OPERATION,
        "delete from contents
        where tenant = $1 and hash in (
            select hash from contents
            where tenant = $1 and hash",
        values![tenant, HashList(hashes), cutoffs.contents],
    );
    delete.push(E::LISTED);
    delete.push(STILL_OLD);
    delete.push(E::SKIP_LOCKED);
    delete.push(")");
    delete.push(STILL_OLD);
    delete.push(" returning cast(1 as bigint), cast(length(payload) as bigint)");
    delete
}
