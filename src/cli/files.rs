//! `sessions files`: lists the files of a session, or prints one.

use std::pin::pin;
use std::sync::Arc;

use anyhow::Context as _;
use futures_util::StreamExt as _;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use super::absent::absent;
use super::item::Item;
use super::output::{print_bytes, print_items};
use super::service::{Service, ServiceError};
use super::source::{Source, SourceArgs};
use crate::http::FileEntry;
use crate::run::files::{list_after, open_tree};
use net::outgoing::{HeaderMap, Method};
use store::Store;
use values::ids::SessionId;
use values::tenant::TenantId;
use workspace::{Entry, FilePath, Tree, WorkspaceLimits};

/// The columns of the list.
const HEADING: [&str; 3] = ["SIZE", "KIND", "PATH"];

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
    #[command(flatten)]
    source: SourceArgs,
}

/// The fields of a file that a row shows.
#[derive(Deserialize)]
struct FileFields {
    path: String,
    kind: String,
    size: Option<u64>,
    #[serde(default)]
    executable: bool,
}

fn parse_path(text: &str) -> Result<FilePath, String> {
    FilePath::parse(text).map_err(|error| error.to_string())
}

/// Lists the files of a session, or prints a file.
pub(super) async fn show(args: FilesArgs) -> anyhow::Result<()> {
    let source = args.source.clone();
    source
        .with(async |source| match source {
            Source::Store { store, tenant, .. } => show_stored(store, tenant, args).await,
            Source::Service(service) => show_served(service, args).await,
        })
        .await
}

async fn show_stored(store: &Arc<dyn Store>, tenant: &TenantId, args: FilesArgs) -> anyhow::Result<()> {
    let states = store.states_load(tenant, args.session_id).await?;
    let Some(states) = states else {
        return Err(absent(&**store, tenant, args.session_id).await);
    };
    let tree = open_tree(store, tenant, &states.environment, WorkspaceLimits::default());
    let file = match &args.path {
        Some(path) => file_at(&tree, path).await?,
        None => None,
    };
    if let Some(file) = file {
        return Ok(print_bytes(&tree.read_entry(&file).await?)?);
    }
    let found = list_after(&tree, args.path.as_ref(), args.recursive, None, usize::MAX).await?;
    let found = Item::all(found.into_iter().map(|(path, entry)| FileEntry::new(path, entry)))?;
    print_items(args.json, &found, HEADING, row)
}

async fn show_served(service: &Service, args: FilesArgs) -> anyhow::Result<()> {
    let files = format!("/v1/sessions/{}/files", args.session_id);
    let filters = [
        ("path", args.path.as_ref().map(ToString::to_string)),
        ("recursive", args.recursive.then(|| "true".to_owned())),
    ];
    match (service.list(&files, &filters, usize::MAX).await, args.path) {
        (Ok(found), _) => print_items(args.json, &found, HEADING, row),
        // No directory is there, so a file may be.
        (Err(ServiceError::Problem(problem)), Some(path)) if problem.code == "file_not_found" => {
            let path = utf8_percent_encode(path.as_str(), NON_ALPHANUMERIC);
            let file = service
                .send(Method::GET, &format!("{files}/{path}"), None, HeaderMap::new())
                .await?;
            let mut pieces = pin!(service.pieces(file));
            while let Some(piece) = pieces.next().await {
                print_bytes(&piece?)?;
            }
            Ok(())
        }
        (Err(error), _) => Err(error.into()),
    }
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

fn row(file: &FileFields) -> [String; 3] {
    let kind = if file.executable { "executable" } else { &file.kind };
    [
        file.size.map_or_else(String::new, |size| size.to_string()),
        kind.to_owned(),
        file.path.clone(),
    ]
}
