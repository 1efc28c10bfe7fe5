//! `sessions files`: lists the files of a session, or prints one.

use std::sync::Arc;

use anyhow::Context as _;

use super::absent::absent;
use super::output::{print_bytes, print_list};
use crate::http::FileEntry;
use crate::run::files::{list_after, open_tree};
use store::Store;
use values::ids::SessionId;
use values::tenant::TenantId;
use workspace::{Entry, FilePath, Tree, WorkspaceLimits};

/// The files to show.
#[derive(Debug, clap::Args)]
pub(super) struct FilesArgs {
    /// The session.
    session_id: SessionId,
    /// The directory to list, or the file to print; by default the root.
    #[arg(value_parser = parse_path)]
    path: Option<FilePath>,
    /// Also lists the entries of the directories below.
    #[arg(long, short)]
    recursive: bool,
    /// Prints the list as JSON.
    #[arg(long)]
    json: bool,
    /// Works on this tenant's data.
    #[arg(long, default_value_t = TenantId::anonymous())]
    tenant: TenantId,
}

fn parse_path(text: &str) -> Result<FilePath, String> {
    FilePath::parse(text).map_err(|error| error.to_string())
}

/// Lists the files of a session, or prints a file.
pub(super) async fn show(store: &Arc<dyn Store>, args: FilesArgs) -> anyhow::Result<()> {
    let states = store.states_load(&args.tenant, args.session_id).await?;
    let Some(states) = states else {
        return Err(absent(&**store, &args.tenant, args.session_id).await);
    };
    let tree = open_tree(store, &args.tenant, &states.environment, WorkspaceLimits::default());
    let file = match &args.path {
        Some(path) => file_at(&tree, path).await?,
        None => None,
    };
    if let Some(file) = file {
        return Ok(print_bytes(&tree.read_entry(&file).await?)?);
    }
    let found = list_after(&tree, args.path.as_ref(), args.recursive, None, usize::MAX).await?;
    let view = |(path, entry)| FileEntry::new(path, entry);
    print_list(args.json, found, view, ["SIZE", "KIND", "PATH"], row)
}

/// Returns the file to which a path leads; `None` if that is a directory.
async fn file_at(tree: &Tree, path: &FilePath) -> anyhow::Result<Option<Entry>> {
    let Some(real_path) = tree.resolve(path).await? else {
        return Ok(None);
    };
    let entry = tree.entry(&real_path).await?;
    let entry = entry.with_context(|| format!("{path} does not exist"))?;
    Ok(Some(entry).filter(|entry| !matches!(entry, Entry::Directory { .. })))
}

fn row((path, entry): &(FilePath, Entry)) -> [String; 3] {
    let (size, kind) = match entry {
        Entry::File {
            size,
            is_executable: true,
            ..
        } => (size.to_string(), "executable"),
        Entry::File { size, .. } => (size.to_string(), "file"),
        Entry::Symlink { .. } => (String::new(), "symlink"),
        Entry::Directory { totals, .. } => (totals.bytes.to_string(), "directory"),
    };
    [size, kind.to_owned(), path.to_string()]
}
