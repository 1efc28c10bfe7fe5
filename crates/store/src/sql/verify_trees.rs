//! Verifies the files of sessions: walks each tree, and checks each directory, file and chunk once.
//!
//! Holds the hashes of visited contents, and the paths that are still to be visited. Files come
//! before directories, so that few paths wait. Hashes contents in [batches](super::row_batches).

use std::collections::HashSet;

use super::contents::contents_fold;
use super::engine::Engine;
use super::objects::ContentFold;
use super::row_batches::RowFold;
use crate::contents::{MAX_BATCH, MAX_BATCH_BYTES, TenantContents};
use crate::error::StoreError;
use crate::inspection::{Chunk, ContentCheck, Inspected, LoadedChunks, Role, Wanted};
use crate::rows::{ContentRow, ObjectRow};
use crate::sessions::VerifyFault;
use crate::verification::{WORKSPACE, fault};
use tasks::off_thread::by_size;
use values::causes::with_causes;
use values::ids::SessionId;
use values::session::Hash;
use values::tenant::TenantId;
use workspace::{ContentsError, Shapes, TreeError, WorkspaceLimits};

const OPERATION: &str = "verify files";

/// The most faults that are reported. A tree that is lost as a whole may have many.
const MAX_FAULTS: usize = 100;

/// The most bytes of a path, more than any workspace has.
const MAX_PATH_BYTES: usize = 4 << 10;

/// The most directories that are read at once. Each may have hundreds of entries.
const MAX_DIRECTORIES: usize = 16;

/// Checks trees, each with a session that has it. A content is checked once, for the first of these
/// sessions.
pub(super) async fn check_trees<E: Engine>(
    engine: &E,
    tenant: &TenantId,
    trees: Vec<(SessionId, Hash)>,
) -> Result<Vec<VerifyFault>, StoreError> {
    let mut walk = Walk {
        engine,
        tenant,
        seen: HashSet::new(),
        files: Vec::new(),
        directories: Vec::new(),
        faults: Vec::new(),
    };
    let contents = TenantContents::of(tenant, engine);
    let mut shapes = Shapes::new(&contents, WorkspaceLimits::CEILINGS);
    let mut faults = Vec::new();
    for (session_id, tree) in trees {
        walk.run(tree).await?;
        // A damaged directory has no shape. Its fault is known.
        if faults.is_empty() && walk.faults.is_empty() {
            walk.faults.extend(shape_fault(shapes.check(tree).await)?);
        }
        let found = walk.faults.drain(..);
        faults.extend(found.map(|detail| fault(session_id, WORKSPACE, detail)));
        if faults.len() >= MAX_FAULTS {
            break;
        }
    }
    faults.truncate(MAX_FAULTS);
    Ok(faults)
}

/// Returns the faults of a tree whose contents are sound.
fn shape_fault(checked: Result<(), TreeError>) -> Result<Option<String>, StoreError> {
    match checked {
        Ok(()) => Ok(None),
        Err(TreeError::Contents(ContentsError::Unavailable(source))) => Err(StoreError::failed(OPERATION)(source)),
        Err(error) => Ok(Some(format!("the tree is invalid: {}", with_causes(&error)))),
    }
}

struct Walk<'e, E> {
    engine: &'e E,
    tenant: &'e TenantId,
    seen: HashSet<(Hash, Role)>,
    /// Files to check.
    files: Vec<Wanted>,
    /// Directories to check.
    directories: Vec<Wanted>,
    /// The faults of the present tree.
    faults: Vec<String>,
}

impl<E: Engine> Walk<'_, E> {
    /// Checks a tree.
    async fn run(&mut self, tree: Hash) -> Result<(), StoreError> {
        self.visit(Wanted {
            hash: tree,
            role: Role::Directory,
            path: String::new(),
        });
        loop {
            let batch = self.next_batch();
            if batch.is_empty() {
                return Ok(());
            }
            let hashes: Vec<Hash> = batch.iter().map(|wanted| wanted.hash).collect();
            let check: ContentCheck = contents_fold(self.engine, OPERATION, self.tenant, &hashes).await?;
            for wanted in &batch {
                self.check(wanted, check.get(wanted.hash)).await?;
            }
            if self.faults.len() >= MAX_FAULTS {
                self.files.clear();
                self.directories.clear();
            }
        }
    }

    fn visit(&mut self, wanted: Wanted) {
        if wanted.path.len() > MAX_PATH_BYTES {
            let detail = "the path is longer than any path may be";
            self.faults.push(format!("{}: {detail}", wanted.path));
        } else if self.seen.insert((wanted.hash, wanted.role)) {
            match wanted.role {
                Role::File(_) => self.files.push(wanted),
                Role::Directory => self.directories.push(wanted),
            }
        }
    }

    fn next_batch(&mut self) -> Vec<Wanted> {
        let (waiting, most) = if self.files.is_empty() {
            (&mut self.directories, MAX_DIRECTORIES)
        } else {
            (&mut self.files, MAX_BATCH)
        };
        waiting.split_off(waiting.len().saturating_sub(most))
    }

    async fn check(&mut self, wanted: &Wanted, found: Option<&Inspected>) -> Result<(), StoreError> {
        let detail = match (found, wanted.role) {
            (None, _) => Some("the content is missing".to_owned()),
            (Some(Inspected::Fault(detail)), _) => Some(detail.clone()),
            (Some(Inspected::Bytes(bytes)), Role::File(size)) if *bytes == size => None,
            (Some(Inspected::Chunks(chunks)), Role::File(size)) => self.check_chunks(wanted.hash, size, chunks).await?,
            (Some(Inspected::Directory(below)), Role::Directory) => {
                for below in below {
                    self.visit(below.at(&wanted.path));
                }
                None
            }
            (Some(_), _) => Some("the content is not what its directory states".to_owned()),
        };
        if let Some(detail) = detail {
            let path = if wanted.path.is_empty() { "." } else { &wanted.path };
            self.faults.push(format!("{path} ({}): {detail}", wanted.hash));
        }
        Ok(())
    }

    /// Checks a large file. Returns its faults.
    async fn check_chunks(&self, file: Hash, size: u64, chunks: &[Chunk]) -> Result<Option<String>, StoreError> {
        let sizes = chunks.iter().try_fold(0_u64, |sum, chunk| sum.checked_add(chunk.size));
        if sizes != Some(size) {
            return Ok(Some("the chunks do not have the size of the file".to_owned()));
        }
        let mut hasher = Box::new(blake3::Hasher::new());
        let mut rest = chunks;
        while !rest.is_empty() {
            let (batch, after) = rest.split_at(batch_length(rest));
            let batch = batch.to_vec();
            let hashes: HashSet<Hash> = batch.iter().map(|chunk| chunk.hash).collect();
            let hashes: Vec<Hash> = hashes.into_iter().collect();
            let loaded: LoadedChunks = contents_fold(self.engine, OPERATION, self.tenant, &hashes).await?;
            let bytes = batch.iter().map(|chunk| chunk.size).sum();
            let work = move || {
                let hashed = loaded.hash_into(&mut hasher, &batch);
                (hasher, hashed)
            };
            let (hashed_so_far, hashed) = by_size(self.tenant, bytes, work).await;
            if let Err(chunk) = hashed {
                return Ok(Some(format!("the chunk {chunk} is missing or differs from its hash")));
            }
            (hasher, rest) = (hashed_so_far, after);
        }
        let is_sound = Hash::from(*hasher.finalize().as_bytes()) == file;
        Ok((!is_sound).then(|| "the chunks together differ from the hash of the file".to_owned()))
    }
}

/// Returns how many of the chunks are read at once: at least one.
fn batch_length(chunks: &[Chunk]) -> usize {
    let mut bytes = 0_u64;
    let fits = |chunk: &&Chunk| {
        bytes = bytes.saturating_add(chunk.size);
        bytes <= MAX_BATCH_BYTES as u64
    };
    chunks.iter().take(MAX_BATCH).take_while(fits).count().max(1)
}

impl RowFold for ContentCheck {
    type Row<'r> = ContentRow<'r>;

    fn push_row(&mut self, row: ContentRow<'_>) -> Result<(), StoreError> {
        self.push(&row)
    }
}

impl RowFold for LoadedChunks {
    type Row<'r> = ContentRow<'r>;

    fn push_row(&mut self, row: ContentRow<'_>) -> Result<(), StoreError> {
        self.push(&row);
        Ok(())
    }
}

impl ContentFold for ContentCheck {
    fn push_unsound(&mut self, row: &ObjectRow, error: StoreError) -> Result<(), StoreError> {
        self.push_fault(row.hash, &error);
        Ok(())
    }
}

impl ContentFold for LoadedChunks {
    /// A chunk that is left out counts as missing.
    fn push_unsound(&mut self, _: &ObjectRow, _: StoreError) -> Result<(), StoreError> {
        Ok(())
    }
}
