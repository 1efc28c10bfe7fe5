//! Reads the paths that models write, and explains why nothing is there.

use std::borrow::Cow;
use std::iter::successors;

use percent_encoding::percent_decode_str;
use serde_json::json;

use crate::builtin::environment_tool::and_more;
use agent::ports::ToolError;
use values::json::Value;
use values::spelling::nearest;
use workspace::{ContentsError, Entry, FilePath, PathError, Tree, TreeError, root_of_relative};

/// The longest path of an argument, in characters.
const MAX_PATH_LENGTH: usize = 1_024;
/// The most entries of a directory that an error lists.
const MAX_LISTED: usize = 20;
/// In larger workspaces no file of the same name is searched for.
const MAX_SEARCHED: u64 = 5_000;

/// Describes the path of a file.
pub(super) fn file_schema() -> Value {
    json!({
        "type": "string",
        "minLength": 1,
        "maxLength": MAX_PATH_LENGTH,
        "description": "The file, relative to the workspace, such as src/main.rs.",
    })
}

/// Describes the path of a directory, which may be left out.
pub(super) fn directory_schema(description: &str) -> Value {
    json!({"type": "string", "maxLength": MAX_PATH_LENGTH, "description": description})
}

/// Reads the path of a file.
pub(super) async fn file_path(tree: &Tree, text: &str) -> Result<FilePath, ToolError> {
    let message = || format!("{text:?} is the workspace itself, not a file; name a file in it");
    let path = directory_path(tree, Some(text)).await?;
    path.ok_or_else(|| ToolError::new(message()))
}

/// Reads the path of a directory; `None` means the whole workspace.
pub(super) async fn directory_path(tree: &Tree, text: Option<&str>) -> Result<Option<FilePath>, ToolError> {
    // Models send an empty path for a field that they mean to leave out.
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    check_home(text)?;
    let plain = plain(tree, text).await;
    FilePath::resolve(&plain).map_err(|error| unusable(text, error))
}

/// Returns a path or a pattern without `file://`, and with the first `/` that an absolute path has
/// lost: a patch has `b/workspace/a` for `/workspace/a`.
pub(super) async fn plain<'a>(tree: &Tree, text: &'a str) -> Cow<'a, str> {
    if let Some(path) = ["file://localhost/", "file:///"]
        .iter()
        .find_map(|scheme| text.strip_prefix(scheme))
    {
        let path = percent_decode_str(path).decode_utf8_lossy();
        return format!("/{path}").into();
    }
    // `workspace/a` is in a directory of that name only if there is one.
    if !text.starts_with('/')
        && let Some(root) = root_of_relative(text)
    {
        let has_own = match FilePath::parse(&root) {
            Ok(root) => matches!(tree.entry(&root).await, Ok(Some(_))),
            Err(_) => false,
        };
        if !has_own {
            return format!("/{text}").into();
        }
    }
    text.into()
}

/// Says why a path or a pattern can't be used.
pub(super) fn unusable(text: &str, error: PathError) -> ToolError {
    let hint = match error {
        PathError::Elsewhere => {
            "file tools have only what is in the workspace; write a path relative to it, such as src/main.rs"
        }
        _ => "paths are relative to the workspace",
    };
    ToolError::new(format!("the path {text:?} can't be used: {error}; {hint}"))
}

/// Refuses the home directory, which is not in the workspace.
pub(super) fn check_home(text: &str) -> Result<(), ToolError> {
    if text == "~" || text.starts_with("~/") {
        let message = format!(
            "the path {text:?} can't be used: ~ is the home directory of commands, which is no part of the workspace; \
             write a path relative to the workspace, such as src/main.rs"
        );
        return Err(ToolError::new(message));
    }
    Ok(())
}

/// Returns the path as models read it.
pub(super) fn shown(path: Option<&FilePath>) -> &str {
    path.map_or(".", FilePath::as_str)
}

/// Returns whether the file at a path may be executed; `None` if there is no file.
pub(super) async fn executable(tree: &Tree, path: &FilePath) -> Result<Option<bool>, TreeError> {
    let Some(path) = tree.resolve(path).await? else {
        return Ok(None);
    };
    match tree.entry(&path).await? {
        Some(Entry::File { is_executable, .. }) => Ok(Some(is_executable)),
        _ => Ok(None),
    }
}

/// Returns the value, or an error that explains the fault to the model and names existing paths.
pub(super) async fn explained<T>(tree: &Tree, result: Result<T, TreeError>) -> Result<T, ToolError> {
    let error = match result {
        Ok(found) => return Ok(found),
        Err(error) => error,
    };
    let message = match &error {
        TreeError::NotFound { path } => match dangling(tree, path).await {
            Some((link, target)) => {
                format!("{path} leads to nothing: {link} is a symlink to {target:?}, which does not exist")
            }
            None => format!("{error}; {}", existing(tree, path).await),
        },
        TreeError::NotAFile { path } => {
            let hint = contents(tree, Some(path)).await;
            format!("{path} is a directory, not a file; {hint}")
        }
        TreeError::NotADirectory { path } => format!("{path} is a file, not a directory"),
        TreeError::Path(source) => format!("{error}: {source}"),
        TreeError::Contents(full @ ContentsError::Full { .. }) => format!("{full}; nothing was changed"),
        TreeError::Contents(_) => {
            let error = &error as &dyn std::error::Error;
            tracing::error!(error, "the files of a workspace could not be read or written");
            "the files could not be read or written because of an internal error; try again".to_owned()
        }
        _ => error.to_string(),
    };
    Err(ToolError::new(message))
}

/// Returns the symlink on a path that leads to nothing, with its target.
async fn dangling(tree: &Tree, path: &FilePath) -> Option<(FilePath, String)> {
    for link in successors(Some(path.clone()), FilePath::parent) {
        let Ok(Some(entry)) = tree.entry(&link).await else {
            continue;
        };
        let Entry::Symlink { target } = entry else { return None };
        let leads_on = match tree.resolve(&link).await {
            Ok(Some(to)) => matches!(tree.entry(&to).await, Ok(Some(_))),
            Ok(None) => true,
            Err(_) => false,
        };
        return (!leads_on).then_some((link, target));
    }
    None
}

/// Names existing paths instead of a missing one: a similar name, a file of the same name
/// elsewhere, or the entries of the nearest directory.
async fn existing(tree: &Tree, path: &FilePath) -> String {
    let mut directory = path.parent();
    let mut name = path.name().to_owned();
    loop {
        if let Ok(entries) = tree.list(directory.as_ref()).await {
            if let Some(similar) = nearest(&name, entries.iter().map(|(name, _)| name.as_str())) {
                let similar = joined(directory.as_ref(), similar);
                return format!("did you mean {similar}?");
            }
            break;
        }
        let Some(missing) = directory else { break };
        missing.name().clone_into(&mut name);
        directory = missing.parent();
    }
    if let Some(elsewhere) = elsewhere(tree, path.name()).await {
        return format!("did you mean {elsewhere}?");
    }
    contents(tree, directory.as_ref()).await
}

/// Finds a file of the same name in another directory.
async fn elsewhere(tree: &Tree, name: &str) -> Option<FilePath> {
    if tree.totals().await.ok()?.entries() > MAX_SEARCHED {
        return None;
    }
    let entries = tree.walk(None).await.ok()?;
    entries
        .into_iter()
        .map(|(path, _)| path)
        .find(|path| path.name() == name)
}

/// Lists the entries of a directory in words.
async fn contents(tree: &Tree, directory: Option<&FilePath>) -> String {
    let entries = tree.list(directory).await.unwrap_or_default();
    let what = directory.map_or("the workspace", FilePath::as_str);
    if entries.is_empty() {
        return format!("{what} is empty");
    }
    let name = |(name, entry): &(String, Entry)| match entry {
        Entry::Directory { .. } => format!("{name}/"),
        Entry::File { .. } | Entry::Symlink { .. } => name.clone(),
    };
    let listed: Vec<_> = entries.iter().take(MAX_LISTED).map(name).collect();
    let more = entries.len() - listed.len();
    format!("{what} has: {}{}", listed.join(", "), and_more(more))
}

fn joined(directory: Option<&FilePath>, name: &str) -> String {
    match directory {
        Some(directory) => format!("{directory}/{name}"),
        None => name.to_owned(),
    }
}
