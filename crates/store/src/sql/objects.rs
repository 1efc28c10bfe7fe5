//! Contents whose payloads are in an object store: written before their rows, and read after them.
//! `store/objects/mod.rs` has the protocol.

use std::collections::HashSet;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use super::engine::Engine;
use super::row_batches::RowFold;
use super::statement::Statement;
use crate::error::StoreError;
use crate::objects::{CONCURRENCY, ObjectName, Objects};
use crate::rows::{ContentRow, NewContentRow, ObjectRow, values};
use tasks::off_thread::by_size;
use values::session::Hash;
use values::tenant::TenantId;

const RECORD: &str = "record an object";

/// Lists an object. The time of the database follows.
const LIST_OBJECT: &str =
    "insert into content_objects (tenant, hash, object, is_removable, recorded_at) values ($1, $2, $3, $4, (";
/// An object that a sweep is deleting stays on the list until another sweep has deleted it.
const LISTED_ALREADY: &str = ")) on conflict (tenant, hash, object) do update
    set is_removable = content_objects.is_removable + 1 where content_objects.is_removable > 0";
/// Whether a row may take a listed object.
const TAKABLE: i16 = 0;
const REMOVABLE: i16 = 1;

/// A result that is folded from contents, in any order.
pub(super) trait ContentFold: for<'r> RowFold<Row<'r> = ContentRow<'r>> {
    /// Adds a content whose object is missing or damaged.
    fn push_unsound(&mut self, _: &ObjectRow, error: StoreError) -> Result<(), StoreError> {
        Err(error)
    }
}

/// A result that lacks the contents in objects.
#[derive(Default)]
pub(super) struct WithoutObjects<F> {
    folded: F,
    objects: Vec<ObjectRow>,
}

impl<F: ContentFold> RowFold for WithoutObjects<F> {
    type Row<'r> = ContentRow<'r>;

    fn push_row(&mut self, row: ContentRow<'_>) -> Result<(), StoreError> {
        match row.in_object()? {
            Some(object) => {
                self.objects.push(object);
                Ok(())
            }
            None => self.folded.push_row(row),
        }
    }
}

/// Adds the contents that are in objects.
pub(super) async fn read_objects<F: ContentFold>(
    engine: &impl Engine,
    tenant: &TenantId,
    read: WithoutObjects<F>,
) -> Result<F, StoreError> {
    let WithoutObjects { mut folded, objects } = read;
    if objects.is_empty() {
        return Ok(folded);
    }
    let store = engine.content_rules().objects.as_deref().ok_or_else(not_configured)?;
    let fetches = objects.into_iter().map(async |row| {
        let name = ObjectName {
            hash: row.hash,
            id: row.object,
        };
        Ok::<_, StoreError>((row, store.get(tenant, name).await?))
    });
    let mut fetched = stream::iter(fetches).buffer_unordered(CONCURRENCY);
    while let Some((row, payload)) = fetched.try_next().await? {
        let work = move || {
            match payload.as_deref().map(|payload| row.with_payload(payload)) {
                Some(Ok(whole)) => folded.push_row(whole)?,
                Some(Err(error)) => folded.push_unsound(&row, error)?,
                None => folded.push_unsound(&row, row.lost())?,
            }
            Ok::<_, StoreError>(folded)
        };
        folded = by_size(tenant, row.length(), work).await?;
    }
    Ok(folded)
}

/// Writes the large payloads into objects, and leaves the ids of these in the rows. Drops large
/// rows that are stored already.
pub(super) async fn put_objects(
    engine: &impl Engine,
    tenant: &TenantId,
    rows: Vec<NewContentRow>,
) -> Result<Vec<NewContentRow>, StoreError> {
    let Some(store) = engine.content_rules().objects.as_deref() else {
        return Ok(rows);
    };
    let is_large = |row: &NewContentRow| row.is_bytes() && u64::try_from(row.size).is_ok_and(|size| store.takes(size));
    let (large, mut others): (Vec<_>, Vec<_>) = rows.into_iter().partition(is_large);
    if large.is_empty() {
        return Ok(others);
    }
    let hashes: Vec<Hash> = large.iter().map(|row| row.hash).collect();
    let stored = engine.contents_renew(tenant, &hashes).await?;
    let stored: HashSet<Vec<u8>> = stored.into_iter().map(|row| row.hash).collect();
    let new = large
        .into_iter()
        .filter(|row| !stored.contains(row.hash.as_bytes().as_slice()));
    let puts = new.map(|row| put_object(engine, store, tenant, row));
    // All writes end, also after a failure: a dropped write may go on unseen.
    let put: Vec<_> = stream::iter(puts).buffer_unordered(CONCURRENCY).collect().await;
    for row in put {
        others.push(row?);
    }
    // Statements that write the same rows at once must lock them in the same order.
    others.sort_unstable_by_key(|row| row.hash);
    Ok(others)
}

async fn put_object<E: Engine>(
    engine: &E,
    store: &dyn Objects,
    tenant: &TenantId,
    mut row: NewContentRow,
) -> Result<NewContentRow, StoreError> {
    let name = ObjectName::new(row.hash);
    list_object(engine, tenant, name, TAKABLE).await?;
    let payload = row.take_payload(name.id);
    store.put(tenant, name, payload).await?;
    // A sweep that has overtaken the write may have found no object to delete. The next one does.
    if list_object(engine, tenant, name, REMOVABLE).await? {
        return Err(StoreError::failed(RECORD)(
            "the object of a content was given up before it was written",
        ));
    }
    Ok(row)
}

/// Lists an object. Returns `false` if it is listed already and a row may still take it.
async fn list_object<E: Engine>(
    engine: &E,
    tenant: &TenantId,
    name: ObjectName,
    is_removable: i16,
) -> Result<bool, StoreError> {
    let id = name.id.as_bytes().as_slice();
    let mut list = Statement::with(RECORD, LIST_OBJECT, values![tenant, &name.hash, id, is_removable]);
    list.push(E::TIME);
    list.push(LISTED_ALREADY);
    Ok(list.execute(engine).await? > 0)
}

/// Returns the error of a store without the object store that it needs.
pub(super) fn not_configured() -> StoreError {
    StoreError::failed("read an object")("contents are in an object store, and `store.objects.url` is not set")
}
