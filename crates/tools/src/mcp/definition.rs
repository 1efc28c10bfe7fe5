//! The definition of a server, as an operator writes it. Data only.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::naming::is_valid_server_name;
use crate::ValueSource;
use crate::fault::DefinitionFault;
use net::outgoing::{AddressRules, Network, PrivateAddresses, RuleKeys};
use values::limits::Pattern;
use values::settings::{duration, integer, optional_duration};

/// The longest prefix of names of tools, in bytes.
const MAX_PREFIX: usize = 32;

/// An MCP server whose tools agents may call.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpDefinition {
    /// The name that agents list; if it is empty, the name of the file.
    #[serde(default)]
    pub name: String,
    /// The address of a server that speaks streamable HTTP.
    #[serde(default)]
    pub(super) url: Option<String>,
    /// The program of a server that speaks over its standard input and output.
    #[serde(default)]
    pub(super) command: Option<PathBuf>,
    /// The arguments of the program.
    #[serde(default)]
    pub(super) args: Vec<String>,
    /// The variables of the program.
    #[serde(default)]
    pub(super) env: BTreeMap<String, ValueSource>,
    /// Files and directories that the program may read and execute, in addition to the ones for all
    /// commands.
    #[serde(default)]
    pub(super) read_only: Vec<PathBuf>,
    /// Whether the program has the network of commands.
    #[serde(default)]
    pub(super) network: bool,
    /// The processor time of the program, from its start to its end.
    #[serde(default, deserialize_with = "optional_duration::<10, 600_000, _>")]
    pub(super) max_cpu_time: Option<Duration>,
    /// The beginning of the names of its tools; by default its name and `_`.
    #[serde(default)]
    prefix: Option<String>,
    /// The tools that agents may call, by the names of the server; empty allows all.
    #[serde(default)]
    pub(super) allow: Vec<Pattern>,
    /// The tools that agents may not call.
    #[serde(default)]
    pub(super) deny: Vec<Pattern>,
    /// Headers of every request.
    #[serde(default)]
    pub(super) headers: BTreeMap<String, ValueSource>,
    /// Where to get an access token.
    #[serde(default)]
    pub(super) oauth: Option<OAuthDefinition>,
    /// The effect of a changed tool definition on a session that has accepted the earlier one.
    #[serde(default)]
    pub(super) on_change: OnChange,
    /// How long a call may take.
    #[serde(default = "timeout", deserialize_with = "duration::<10, 600_000, _>")]
    pub(super) timeout: Duration,
    /// How long connecting and listing the tools may take.
    #[serde(default, deserialize_with = "optional_duration::<10, 600_000, _>")]
    connect_timeout: Option<Duration>,
    /// The largest response to one request.
    #[serde(
        default = "max_response_bytes",
        deserialize_with = "integer::<_, 1_024, 67_108_864, _>"
    )]
    pub(super) max_response_bytes: usize,
    /// Also sends unencrypted.
    #[serde(default)]
    allow_http: bool,
    /// Networks that are not public and that the server may be in.
    #[serde(default)]
    allow_networks: Vec<Network>,
}

/// The effect of a tool definition that changes after a session has accepted it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnChange {
    /// The session accepts the new definition.
    Accept,
    /// Calls need an approval, which accepts the new definition.
    #[default]
    Ask,
    /// The model is not shown the new definition, and calls fail.
    Refuse,
}

/// An access token by the client credentials grant of OAuth 2.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OAuthDefinition {
    /// The address of the token endpoint.
    pub(super) token_url: String,
    pub(super) client_id: String,
    /// The name of the secret of the client.
    pub(super) client_secret: String,
    /// The scope of the token; if it is empty, the server chooses.
    #[serde(default)]
    pub(super) scope: String,
}

impl McpDefinition {
    /// Checks the name and the prefix, and that the keys belong together.
    pub(super) fn check(&self) -> Result<(), DefinitionFault> {
        if !is_valid_server_name(&self.name) {
            let problem = format!(
                "a server is named by 1 to 32 letters, digits, - and _, not {:?}",
                self.name
            );
            return Err(DefinitionFault::new("name", problem));
        }
        let allowed = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_');
        let prefix = self.prefix();
        if prefix.len() > MAX_PREFIX + 1 || !prefix.bytes().all(allowed) {
            let problem = format!("a prefix has up to {MAX_PREFIX} letters, digits, - and _");
            return Err(DefinitionFault::new("prefix", problem));
        }
        self.check_kind()
    }

    fn check_kind(&self) -> Result<(), DefinitionFault> {
        let (misplaced, kind) = match (&self.url, &self.command) {
            (Some(_), None) => (self.first_key_of_command(), "command"),
            (None, Some(_)) => (self.first_key_of_url(), "url"),
            (None, None) => {
                return Err(DefinitionFault::new(
                    "url",
                    "missing: a server has a `url` or a `command`",
                ));
            }
            (Some(_), Some(_)) => {
                return Err(DefinitionFault::new(
                    "command",
                    "a server has a `url` or a `command`, not both",
                ));
            }
        };
        misplaced.map_or(Ok(()), |key| {
            Err(DefinitionFault::new(key, format!("is only for servers with `{kind}`")))
        })
    }

    fn first_key_of_command(&self) -> Option<&'static str> {
        let set = [
            ("args", !self.args.is_empty()),
            ("env", !self.env.is_empty()),
            ("read_only", !self.read_only.is_empty()),
            ("network", self.network),
            ("max_cpu_time", self.max_cpu_time.is_some()),
        ];
        set.into_iter().find_map(|(key, is_set)| is_set.then_some(key))
    }

    fn first_key_of_url(&self) -> Option<&'static str> {
        let set = [
            ("headers", !self.headers.is_empty()),
            ("oauth", self.oauth.is_some()),
            ("allow_http", self.allow_http),
            ("allow_networks", !self.allow_networks.is_empty()),
        ];
        set.into_iter().find_map(|(key, is_set)| is_set.then_some(key))
    }

    /// Returns the beginning of the names of the tools.
    pub(super) fn prefix(&self) -> String {
        self.prefix.clone().unwrap_or_else(|| format!("{}_", self.name))
    }

    /// Returns whether agents may call the tool.
    pub(super) fn allows(&self, tool: &str) -> bool {
        let matches = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.matches(tool));
        (self.allow.is_empty() || matches(&self.allow)) && !matches(&self.deny)
    }

    /// Returns how long connecting may take.
    pub fn connect_timeout(&self) -> Duration {
        // A program takes longer to start than a connection.
        let default = Duration::from_secs(if self.command.is_some() { 30 } else { 10 });
        self.connect_timeout.unwrap_or(default)
    }

    /// Returns the rules of the client of the server.
    pub fn rules(&self) -> AddressRules {
        AddressRules {
            allow_http: self.allow_http,
            private: PrivateAddresses::In(self.allow_networks.clone()),
            ..AddressRules::public(RuleKeys {
                allow_http: "allow_http",
                private: "allow_networks",
            })
        }
    }
}

fn timeout() -> Duration {
    Duration::from_mins(1)
}

fn max_response_bytes() -> usize {
    4 << 20
}
