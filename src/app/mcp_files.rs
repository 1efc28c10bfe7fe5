//! The MCP servers of the configured folder.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;

use super::toml_file::{parse, toml_files};
use super::tool_settings;
use crate::config::Config;
use net::outgoing::{NameResolver, OutgoingClient};
use tools::Commands;
use tools::mcp::{McpDefinition, McpServers};

/// Reads every `*.toml` of the folder. The folder need not exist. Connects to nothing.
pub(super) fn mcp_servers_of(
    config: &Config,
    resolver: &Arc<dyn NameResolver>,
    commands: &Arc<Commands>,
) -> anyhow::Result<McpServers> {
    let mut servers = McpServers::default();
    for path in toml_files(&config.mcp.directory, "MCP servers")? {
        let added = add(&mut servers, &path, config, (resolver, commands));
        added.with_context(|| path.display().to_string())?;
    }
    Ok(servers)
}

fn add(
    servers: &mut McpServers,
    path: &Path,
    config: &Config,
    (resolver, commands): (&Arc<dyn NameResolver>, &Arc<Commands>),
) -> anyhow::Result<()> {
    let text = fs::read_to_string(path).context("can't be read")?;
    let mut definition: McpDefinition = parse(&text)?;
    if definition.name.is_empty() {
        definition.name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    }
    let client = OutgoingClient::new(
        definition.rules(),
        tool_settings::mcp_client(&definition),
        Arc::clone(resolver),
    )?;
    Ok(servers.add(definition, &tool_settings::secrets(config), &client, commands)?)
}

#[cfg(test)]
mod tests {
    use super::super::definition_folder::folder;
    use super::*;
    use agent::ports::ToolServers as _;
    use net::outgoing::SystemResolver;

    /// Reads a folder with these files. Returns the error about a missing server, which names all
    /// servers.
    fn load(files: &[(&str, &str)]) -> Result<String, String> {
        let (_folder, config) = folder("mcp.directory", files);
        let resolver: Arc<dyn NameResolver> = Arc::new(SystemResolver);
        let commands = Commands::new(tool_settings::commands(&config, None).unwrap());
        match mcp_servers_of(&config, &resolver, &commands) {
            Ok(servers) => Ok(servers.check(&["none".to_owned()]).unwrap_err().known),
            Err(error) => Err(format!("{error:#}")),
        }
    }

    const SERVER: &str = "url = 'https://example.org/mcp'\n";

    #[test]
    fn a_folder_has_servers_and_other_files() {
        let known = load(&[
            ("b.toml", SERVER),
            ("a.toml", &format!("name = 'first'\n{SERVER}")),
            (".hidden.toml", "not a server"),
            ("d.toml.example", "not a server"),
        ]);
        assert_eq!(known.unwrap(), "b, first");
        assert_eq!(load(&[]), Ok(String::new()));
    }

    #[test]
    fn mistakes_name_their_file_and_key() {
        let with = |line: &str| format!("{SERVER}{line}\n");
        for (files, expected) in [
            (vec![("a.toml", "url = 7".to_owned())], "a.toml: line 1: `url`: "),
            (
                vec![("a.toml", with("prefx = 'x'"))],
                "a.toml: line 2: `prefx`: unknown field `prefx`, did you mean `prefix`?",
            ),
            (
                vec![("a.toml", String::new())],
                "a.toml: `url`: missing: a server has a `url` or a `command`",
            ),
            (
                vec![("a.toml", with("command = 'server'"))],
                "a.toml: `command`: a server has a `url` or a `command`, not both",
            ),
            (
                vec![("a b.toml", SERVER.to_owned())],
                "a b.toml: `name`: a server is named by",
            ),
            (
                vec![("a.toml", with("prefix = 'a b'"))],
                "a.toml: `prefix`: a prefix has",
            ),
            (
                vec![("a.toml", "url = 'ftp://example.org'".to_owned())],
                "a.toml: `url`: its scheme",
            ),
            (
                vec![("a.toml", "url = 'http://example.org/'".to_owned())],
                "a.toml: `url`: its scheme must be https (the operator can allow http with allow_http)",
            ),
            (
                vec![("a.toml", "url = 'https://10.0.0.1/'".to_owned())],
                "a.toml: `url`: its address is not public (the operator can allow it with allow_networks)",
            ),
            (
                vec![("a.toml", with("on_change = 'maybe'"))],
                "a.toml: line 2: `on_change`: ",
            ),
            (
                vec![("a.toml", with("timeout = '1h'"))],
                "a.toml: line 2: `timeout`: invalid value: string \"1h\", expected a duration",
            ),
            (
                vec![("a.toml", with("[headers]\nx = { secret = 'unset' }"))],
                "a.toml: `headers.x`: the secret \"unset\" is not set",
            ),
            (
                vec![("a.toml", with("[headers]\nx = { secret = 'other' }"))],
                "a.toml: `headers.x`: no secret is named \"other\"",
            ),
            (
                vec![("a.toml", with("[headers]\nAuthorization = 'Bearer x'"))],
                "a.toml: `headers.Authorization`: a header with credentials",
            ),
            (
                vec![("a.toml", with("[headers]\nMcp-Session-Id = 'x'"))],
                "a.toml: `headers.Mcp-Session-Id`: the service sets this header itself",
            ),
            (
                vec![(
                    "a.toml",
                    with("[oauth]\ntoken_url = 'https://10.0.0.1/'\nclient_id = 'a'\nclient_secret = 'unset'"),
                )],
                "a.toml: `oauth.client_secret`: the secret \"unset\" is not set",
            ),
            (
                vec![("a.toml", SERVER.to_owned()), ("b.toml", with("name = 'a'"))],
                "b.toml: `name`: another file defines the server \"a\"",
            ),
        ] {
            let files: Vec<_> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
            let error = load(&files).unwrap_err();
            assert!(error.contains(expected), "{error}\nshould have\n{expected}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }

    #[test]
    fn programs_have_keys_of_their_own() {
        let programs_only = "is only for servers with `command`";
        let addresses_only = "is only for servers with `url`";
        for (text, expected) in [
            (
                "command = 'bin/server'",
                "`command`: \"bin/server\" is neither an absolute path nor the name of a program",
            ),
            (
                "command = '..'",
                "`command`: \"..\" is neither an absolute path nor the name of a program",
            ),
            (
                "command = 'a'\nargs = [\"a\\u0000\"]",
                "`args`: an argument can't have a NUL character",
            ),
            (
                "command = 'a'\nread_only = ['data']",
                "`read_only`: data is not an absolute path",
            ),
            (
                "command = 'a'\nnetwork = true",
                "`network`: commands have no network: add hosts to `sandbox.network.allow_hosts`",
            ),
            (
                "command = 'a'\nmax_cpu_time = '1h'",
                "line 2: `max_cpu_time`: invalid value: string \"1h\", expected a duration",
            ),
            (
                "command = 'a'\n[env]\n'A=B' = 'x'",
                "`env.A=B`: is not the name of a variable",
            ),
            (
                "command = 'a'\n[env]\nKEY = { secret = 'other' }",
                "`env.KEY`: no secret is named \"other\"",
            ),
            (
                "command = 'a'\nallow_http = true",
                &format!("`allow_http`: {addresses_only}"),
            ),
            (
                "command = 'a'\nallow_networks = ['10.0.0.1']",
                &format!("`allow_networks`: {addresses_only}"),
            ),
            (
                "command = 'a'\n[headers]\nx = 'y'",
                &format!("`headers`: {addresses_only}"),
            ),
            (
                "command = 'a'\n[oauth]\ntoken_url = 'x'\nclient_id = 'a'\nclient_secret = 'b'",
                &format!("`oauth`: {addresses_only}"),
            ),
            (&format!("{SERVER}args = ['a']"), &format!("`args`: {programs_only}")),
            (
                &format!("{SERVER}read_only = ['/a']"),
                &format!("`read_only`: {programs_only}"),
            ),
            (
                &format!("{SERVER}network = true"),
                &format!("`network`: {programs_only}"),
            ),
            (
                &format!("{SERVER}max_cpu_time = '1m'"),
                &format!("`max_cpu_time`: {programs_only}"),
            ),
            (&format!("{SERVER}[env]\na = 'b'"), &format!("`env`: {programs_only}")),
        ] {
            let error = load(&[("a.toml", text)]).unwrap_err();
            assert!(error.contains(expected), "{error}\nshould have\n{expected}");
        }
    }
}
