//! The HTTP tools of the configured folder.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail, ensure};

use super::toml_file::{parse, toml_files};
use super::tool_settings;
use crate::config::Config;
use agent::ports::Tool;
use net::outgoing::{NameResolver, OutgoingClient};
use tools::{HttpToolDefinition, HttpToolSource, http_tools};
use values::clock::Clock;
use values::json::{Value, without_mark};

/// The largest OpenAPI document.
const MAX_DOCUMENT: u64 = 16 << 20;

/// Reads every `*.toml` of the folder, and makes its tools. The folder need not exist.
pub(super) fn http_tools_of(
    config: &Config,
    resolver: &Arc<dyn NameResolver>,
    clock: &Arc<dyn Clock>,
) -> anyhow::Result<Vec<Arc<dyn Tool>>> {
    let mut tools: Vec<(Arc<dyn Tool>, PathBuf)> = Vec::new();
    for path in toml_files(&config.tools.directory, "tools")? {
        let made = tools_of_file(&path, config, resolver, clock).with_context(|| path.display().to_string())?;
        for tool in made {
            let name = &tool.spec().name;
            if let Some((_, other)) = tools.iter().find(|(other, _)| other.spec().name == *name) {
                bail!(
                    "{} and {} both define the tool {name:?}",
                    other.display(),
                    path.display()
                );
            }
            tools.push((tool, path.clone()));
        }
    }
    Ok(tools.into_iter().map(|(tool, _)| tool).collect())
}

fn tools_of_file(
    path: &Path,
    config: &Config,
    resolver: &Arc<dyn NameResolver>,
    clock: &Arc<dyn Clock>,
) -> anyhow::Result<Vec<Arc<dyn Tool>>> {
    let text = fs::read_to_string(path).context("can't be read")?;
    let mut definition: HttpToolDefinition = parse(&text)?;
    if definition.name.is_empty() {
        definition.name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    }
    let document = match definition.source()? {
        HttpToolSource::OpenApi(chosen) => {
            let path = path.parent().unwrap_or(Path::new("")).join(&chosen.document);
            let document = document(&path);
            Some(document.with_context(|| format!("`openapi`: {}", path.display()))?)
        }
        HttpToolSource::Declared(_) => None,
    };
    let client = OutgoingClient::new(
        definition.rules(),
        tool_settings::http_tool_client(),
        Arc::clone(resolver),
    )?;
    let secrets = tool_settings::secrets(config);
    Ok(http_tools(&definition, document.as_ref(), &secrets, &client, clock)?)
}

fn document(path: &Path) -> anyhow::Result<Value> {
    let mut bytes = Vec::new();
    let file = fs::File::open(path).context("can't be read")?;
    file.take(MAX_DOCUMENT + 1)
        .read_to_end(&mut bytes)
        .context("can't be read")?;
    ensure!(
        bytes.len() as u64 <= MAX_DOCUMENT,
        "it has more than {MAX_DOCUMENT} bytes"
    );
    serde_json::from_slice(without_mark(&bytes))
        .context("it is not valid JSON (a document in YAML has to be converted)")
}

#[cfg(test)]
mod tests {
    use super::super::definition_folder::folder;
    use super::*;
    use net::outgoing::SystemResolver;
    use values::clock::SystemClock;

    /// Makes the tools of a folder with these files. Returns their names.
    fn load(files: &[(&str, &str)]) -> (tempfile::TempDir, Result<Vec<String>, String>) {
        let (folder, config) = folder("tools.directory", files);
        let resolver: Arc<dyn NameResolver> = Arc::new(SystemResolver);
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let tools = http_tools_of(&config, &resolver, &clock);
        let names = tools.map(|tools| tools.iter().map(|tool| tool.spec().name.clone()).collect());
        (folder, names.map_err(|error| format!("{error:#}")))
    }

    const TOOL: &str = "description = 'd'\nurl = 'https://example.org/'\n";
    const DOCUMENT: &str =
        r#"{"openapi": "3.1.0", "paths": {"/a": {"get": {"operationId": "one"}, "put": {"operationId": "two"}}}}"#;
    const OPENAPI: &str = "openapi = 'shop.json'\nbase_url = 'https://example.org'\noperations = ['two', 'one']\n";

    #[test]
    fn a_folder_has_tools_and_other_files() {
        let (_folder, names) = load(&[
            ("b.toml", TOOL),
            ("a.toml", &format!("name = 'first'\n{TOOL}")),
            ("c.toml", OPENAPI),
            ("shop.json", DOCUMENT),
            (".hidden.toml", "not a tool"),
            ("d.toml.example", "not a tool"),
        ]);
        assert_eq!(names.unwrap(), ["first", "b", "two", "one"]);
        assert_eq!(load(&[]).1, Ok(Vec::new()));
    }

    #[test]
    fn an_operation_that_can_not_be_a_tool_is_left_out_alone() {
        let document = r#"{"openapi": "3.0.0", "paths": {"/a": {
            "get": {"operationId": "one"},
            "put": {"operationId": "two", "requestBody": {"$ref": "elsewhere.json#/a"}}
        }, "/b": {
            "get": {"operationId": "three", "parameters": [{"in": "query", "name": "x", "style": "pipeDelimited"}]},
            "put": {"operationId": "four", "parameters": [{"in": "query", "name": "x", "schema": {"type": "int"}}]},
            "post": {"operationId": "::"}
        }}}"#;
        let definition = "openapi = 'shop.json'\nbase_url = 'https://example.org'\n\
                          operations = ['two', 'three', 'four', '::', 'one']\n";
        let (_folder, names) = load(&[("a.toml", definition), ("shop.json", document)]);
        assert_eq!(names.unwrap(), ["one"]);
        let only = definition.replace(", 'three', 'four', '::', 'one'", "");
        let (_folder, names) = load(&[("a.toml", only.as_str()), ("shop.json", document)]);
        assert!(names.unwrap_err().contains("a.toml: `openapi`: two: "));
        let (_folder, names) = load(&[("a.toml", &format!("\u{feff}{TOOL}"))]);
        assert_eq!(names.unwrap(), ["a"]);
    }

    #[test]
    fn mistakes_name_their_file_and_key() {
        for (files, expected) in [
            (&[("a.toml", "url = 7")][..], "a.toml: line 1: `url`: "),
            (
                &[("a.toml", "description = 'd'\nurls = 'x'")],
                "a.toml: line 2: `urls`: unknown field `urls`, did you mean `url`?",
            ),
            (
                &[("a.toml", "url = 'https://example.org'")],
                "a.toml: `description`: missing",
            ),
            (
                &[("a.toml", &format!("{TOOL}[headers]\nx = {{ secret = 'unset' }}"))],
                "a.toml: `headers.x`: the secret \"unset\" is not set",
            ),
            (&[("a.toml", OPENAPI)], "a.toml: `openapi`: "),
            (
                &[("a.toml", OPENAPI), ("shop.json", "openapi: 3.1.0")],
                "it is not valid JSON (a document in YAML has to be converted)",
            ),
            (
                &[("a.toml", OPENAPI), ("b.toml", OPENAPI), ("shop.json", DOCUMENT)],
                "b.toml both define the tool \"two\"",
            ),
        ] {
            let (_folder, names) = load(files);
            let error = names.unwrap_err();
            assert!(error.contains(expected), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }
}
