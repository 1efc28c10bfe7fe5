//! Finds the contents of a tenant that nothing refers to: lists all of them, and marks the contents
//! that the trees of environments and journals reach. Reads directories and lists of chunks only.
//!
//! Needs about 40 bytes of memory for each content of the tenant.

use futures_util::TryStreamExt as _;

use crate::contents::MAX_BATCH;
use crate::driver_error::store_error;
use crate::error::StoreError;
use crate::rows::{ContentRow, RowName, StoredTime, is_node, values};
use crate::sql::contents::contents_statement;
use crate::sql::row_batches::{RowFold, rows_fold};
use crate::sql::{Engine, EngineRow, Statement};
use tasks::off_thread::by_size;
use values::session::Hash;
use values::tenant::TenantId;
use workspace::{Link, content_links};

/// The name of a sweep in errors.
pub(super) const OPERATION: &str = "sweep contents";

/// Selects the trees of all environments and journals, in one snapshot: a commit moves a tree from
/// a journal to an environment.
const ROOTS: &str = "select distinct tree, cast(0 as smallint) as in_journal
    from states
    where tenant = $1 and kind = 'environment' and tree is not null
    union all
    select tree, cast(1 as smallint) from run_journal where tenant = $1 and tree is not null";

const LIST: &str = "select hash, kind, cast(case when written_at < $2 then 1 else 0 end as smallint)
    from contents where tenant = $1
    order by hash";

/// The contents that nothing refers to.
pub(super) struct Unreferenced {
    /// The hashes of contents that are old enough.
    pub(super) hashes: Vec<Hash>,
    /// Whether any journal refers to files.
    pub(super) has_journals: bool,
}

/// Finds the contents that no run has written since the given time and that nothing refers to.
pub(super) async fn unreferenced<E: Engine>(
    engine: &E,
    tenant: &TenantId,
    since: StoredTime,
) -> Result<Unreferenced, StoreError> {
    // The roots are read before the list. So all that they reach is in the list.
    let roots = roots(engine, tenant).await?;
    let has_journals = roots.has_journals;
    let mut marks = list(engine, tenant, since).await?;
    if marks.listed.iter().all(|content| !content.is_old) {
        let hashes = Vec::new();
        return Ok(Unreferenced { hashes, has_journals });
    }
    marks.mark(&roots.trees);
    while !marks.unvisited.is_empty() {
        let batch = marks
            .unvisited
            .split_off(marks.unvisited.len().saturating_sub(MAX_BATCH));
        let Links(links) = rows_fold(engine, tenant, contents_statement::<E>(OPERATION, tenant, &batch)).await?;
        let bytes = size_of_val(links.as_slice()) as u64;
        let work = move || {
            marks.mark(&links);
            marks
        };
        marks = by_size(tenant, bytes, work).await;
    }
    let is_doomed = |content: &Listed| content.is_old && !content.is_reached;
    let doomed = marks.listed.into_iter().filter(is_doomed);
    Ok(Unreferenced {
        hashes: doomed.map(|content| content.hash).collect(),
        has_journals,
    })
}

/// Reads the trees of a tenant's environments and journals.
async fn roots(engine: &impl Engine, tenant: &TenantId) -> Result<Roots, StoreError> {
    let failed = store_error(OPERATION);
    let name = RowName::new("states", &"of a sweep");
    let mut rows = engine.fetch(Statement::with(OPERATION, ROOTS, values![tenant]));
    let mut roots = Roots::default();
    while let Some(row) = rows.try_next().await.map_err(&failed)? {
        let (tree, in_journal): (Vec<u8>, i16) = row.read().map_err(&failed)?;
        roots.trees.push(name.hash("tree", &tree)?);
        roots.has_journals |= in_journal != 0;
    }
    Ok(roots)
}

/// Lists the contents of a tenant, in the order of their hashes.
async fn list(engine: &impl Engine, tenant: &TenantId, since: StoredTime) -> Result<Marks, StoreError> {
    let failed = store_error(OPERATION);
    let mut rows = engine.fetch(Statement::with(OPERATION, LIST, values![tenant, since]));
    let mut listed = Vec::new();
    while let Some(row) = rows.try_next().await.map_err(&failed)? {
        listed.push(Listed::read(&row)?);
    }
    // The engines and the binary search must agree on the order.
    listed.sort_unstable_by_key(|content: &Listed| content.hash);
    Ok(Marks {
        listed,
        unvisited: Vec::new(),
    })
}

/// The contents of a tenant, and how far the marking has come.
struct Marks {
    /// All contents, by hash.
    listed: Vec<Listed>,
    /// Directories and lists of chunks that are reached and whose links are not followed yet.
    unvisited: Vec<Hash>,
}

struct Listed {
    hash: Hash,
    /// Whether it has links to other contents.
    is_node: bool,
    is_old: bool,
    is_reached: bool,
}

impl Listed {
    fn read(row: &EngineRow) -> Result<Self, StoreError> {
        let (hash, kind, is_old): (Vec<u8>, i16, i16) = row.read().map_err(store_error(OPERATION))?;
        Ok(Self {
            hash: RowName::new("contents", &"of a sweep").hash("hash", &hash)?,
            is_node: is_node(kind),
            is_old: is_old != 0,
            is_reached: false,
        })
    }
}

impl Marks {
    /// Marks contents. Ignores missing contents: nothing can be found below them.
    fn mark(&mut self, hashes: &[Hash]) {
        for hash in hashes {
            let Ok(at) = self.listed.binary_search_by_key(hash, |content| content.hash) else {
                continue;
            };
            let content = &mut self.listed[at];
            if !content.is_reached && content.is_node {
                self.unvisited.push(*hash);
            }
            content.is_reached = true;
        }
    }
}

/// The trees from which contents are reached.
#[derive(Default)]
struct Roots {
    trees: Vec<Hash>,
    has_journals: bool,
}

/// The hashes to which directories and lists of chunks refer.
#[derive(Default)]
struct Links(Vec<Hash>);

impl RowFold for Links {
    type Row<'r> = ContentRow<'r>;

    fn push_row(&mut self, row: ContentRow<'_>) -> Result<(), StoreError> {
        let content = row.decode()?;
        let links = content_links(content.kind, &content.bytes);
        let links = links.map_err(|error| RowName::new("contents", &content.hash).corrupt("payload", error))?;
        self.0.extend(links.iter().map(Link::hash));
        Ok(())
    }
}
