//! Deletes the objects that no content refers to: objects of removed contents, and of writes that
//! did not end. `store/objects/mod.rs` has the protocol.
//!
//! An object is marked as removable in a statement of its own before it is deleted. After that, no
//! content can take it. A crash before its row is deleted leaves it to the next sweep, which finds
//! that the object does not exist.

use std::error::Error;

use futures_util::{StreamExt as _, stream};
use uuid::Uuid;

use super::Cutoffs;
use crate::error::StoreError;
use crate::objects::{CONCURRENCY, ObjectName, Objects};
use crate::rows::{RowName, values};
use crate::sql::{Engine, Statement};
use values::tenant::TenantId;

const OPERATION: &str = "sweep objects";

/// Marks the objects of writes that did not end within the grace period. Skips objects that a row
/// is taking, so that neither waits for the other while it holds rows.
const CLAIM: &str = "update content_objects set is_removable = 1
    where (tenant, hash, object) in (
        select tenant, hash, object from content_objects where is_removable = 0 and recorded_at < $1";

const REMOVABLE: &str = "select tenant, hash, object, is_removable from content_objects
    where is_removable > 0
    order by recorded_at
    limit $1";

/// Spares an object that was listed again since the sweep has read the list.
const FORGET: &str =
    "delete from content_objects where tenant = $1 and hash = $2 and object = $3 and is_removable = $4";

/// The tenant, the hash, the id, and how often the object was listed as removable.
type Removable = (String, Vec<u8>, Vec<u8>, i16);

/// Deletes some objects. Returns whether there may be more. Leaves objects that can't be deleted to
/// the next sweep.
pub(super) async fn sweep_objects<E: Engine>(engine: &E, cutoffs: Cutoffs, limit: i64) -> Result<bool, StoreError> {
    let mut claim = Statement::with(OPERATION, CLAIM, values![cutoffs.contents]);
    claim.push(E::SKIP_LOCKED);
    claim.push(")");
    claim.execute(engine).await?;
    let select = Statement::with(OPERATION, REMOVABLE, values![limit]);
    let removable: Vec<Removable> = select.fetch_all(engine).await?;
    let Some(store) = engine.content_rules().objects.as_deref() else {
        if !removable.is_empty() {
            tracing::warn!("objects of removed contents are left, since no object store is configured");
        }
        return Ok(false);
    };
    let found = removable.len();
    let deletions = removable.into_iter().map(|row| delete(engine, store, row));
    let deleted: Vec<_> = stream::iter(deletions).buffer_unordered(CONCURRENCY).collect().await;
    let failures: Vec<_> = deleted.into_iter().filter_map(Result::err).collect();
    if let Some(error) = failures.first() {
        let error = error as &dyn Error;
        tracing::warn!(objects = failures.len(), error, "objects can't be deleted");
        return Ok(false);
    }
    Ok(i64::try_from(found).is_ok_and(|found| found >= limit))
}

async fn delete(
    engine: &impl Engine,
    store: &dyn Objects,
    (tenant, hash, object, times_listed): Removable,
) -> Result<(), StoreError> {
    let name = RowName::new("content_objects", &tenant);
    let tenant: TenantId = name.parse("tenant", &tenant)?;
    let object = ObjectName {
        hash: name.hash("hash", &hash)?,
        id: Uuid::from_slice(&object).map_err(|error| name.corrupt("object", error))?,
    };
    store.delete(&tenant, object).await?;
    let id = object.id.as_bytes().as_slice();
    let forget = Statement::with(OPERATION, FORGET, values![&tenant, &object.hash, id, times_listed]);
    forget.execute(engine).await.map(drop)
}
