//! A server that is a program.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::mpsc::channel;
use tokio_util::task::TaskTracker;

use super::error_log::ErrorLog;
use super::link::ProcessLink;
use super::transport::{Messages, StdioTransport, transport};
use crate::fault::DefinitionFault;
use crate::mcp::definition::McpDefinition;
use crate::mcp::incoming::Incoming;
use crate::mcp::request_error::RequestError;
use crate::mcp::requests::Requests;
use crate::{Commands, ProcessSettings, Redactor, SecretValue, ToolSecrets, ValueSource};
use values::causes::with_causes;
use values::tenant::TenantId;

/// The pieces of output that wait to be read. The process waits while there is no room.
const PENDING_PIECES: usize = 4;

/// How the process of a server is started.
#[derive(Debug)]
pub(in crate::mcp) struct StdioEndpoint {
    server: String,
    commands: Arc<Commands>,
    settings: ProcessSettings,
    redactor: Redactor,
    max_response: usize,
}

impl StdioEndpoint {
    /// Checks the program of a definition.
    pub(in crate::mcp) fn new(
        definition: &McpDefinition,
        secrets: &ToolSecrets,
        commands: &Arc<Commands>,
    ) -> Result<Self, DefinitionFault> {
        let program = definition.command.clone().unwrap_or_default();
        check_program(&program)?;
        if definition.args.iter().any(|argument| argument.contains('\0')) {
            return Err(DefinitionFault::new("args", "an argument can't have a NUL character"));
        }
        if let Some(path) = definition.read_only.iter().find(|path| !path.is_absolute()) {
            let problem = format!("{} is not an absolute path", path.display());
            return Err(DefinitionFault::new("read_only", problem));
        }
        if definition.network && !commands.have_network() {
            let problem = "commands have no network: add hosts to `sandbox.network.allow_hosts`";
            return Err(DefinitionFault::new("network", problem));
        }
        let mut used = Vec::new();
        let variables = definition
            .env
            .iter()
            .map(|(name, source)| Ok((name.clone(), variable(name, source, secrets, &mut used)?)));
        let variables = variables.collect::<Result<BTreeMap<_, _>, DefinitionFault>>()?;
        Ok(Self {
            server: definition.name.clone(),
            commands: Arc::clone(commands),
            settings: ProcessSettings {
                program,
                arguments: definition.args.iter().map(Into::into).collect(),
                variables,
                read_only: definition.read_only.clone(),
                has_network: definition.network,
                cpu_time: definition.max_cpu_time,
            },
            redactor: Redactor::new(&used),
            max_response: definition.max_response_bytes,
        })
    }

    /// Starts the process of a tenant. A task sees to its end.
    pub(in crate::mcp) async fn start(
        &self,
        tenant: &TenantId,
        requests: &Arc<Requests>,
        tasks: &TaskTracker,
    ) -> Result<(StdioTransport, Arc<ProcessLink>), RequestError> {
        let program = self.program();
        let started = self.commands.start(self.settings.clone()).await;
        let (input, process) = started.map_err(|error| {
            let words = format!("its process can't be started: {} ({program})", with_causes(&error));
            RequestError::Unreachable(words)
        })?;
        let link = Arc::new(ProcessLink::new(program, self.max_response, &requests.closed));
        let (sender, output) = channel(PENDING_PIECES);
        let task_link = Arc::clone(&link);
        let server = self.server.clone();
        tasks.spawn(async move {
            let end = process.pass_on(&sender).await;
            tracing::debug!(server, exit = ?end.exit, "the process of an MCP server has ended");
            // Before the output ends, so that the reason is known then.
            task_link.end(&end);
            drop(sender);
        });
        let incoming = Incoming::new(&self.server, &self.redactor, tenant, requests);
        let errors = ErrorLog::new(self.server.clone(), self.redactor.clone(), &link);
        let messages = Messages::new(output, incoming, errors, &link, self.max_response);
        Ok((transport(input, messages), link))
    }

    /// Returns why the program can't be executed, as far as that is known without a start.
    pub(in crate::mcp) fn problem(&self) -> Option<String> {
        self.commands.find_program(&self.settings).err()
    }

    /// Describes the program, for errors.
    fn program(&self) -> String {
        match self.commands.find_program(&self.settings) {
            Ok(path) => format!("`command` is {}", path.display()),
            Err(problem) => format!("`command`: {problem}"),
        }
    }
}

fn check_program(program: &Path) -> Result<(), DefinitionFault> {
    let is_name = program.components().count() == 1 && program.file_name().is_some();
    if (is_name || program.is_absolute()) && !program.as_os_str().as_encoded_bytes().contains(&0) {
        return Ok(());
    }
    let problem = format!(
        "\"{}\" is neither an absolute path nor the name of a program",
        program.display()
    );
    Err(DefinitionFault::new("command", problem))
}

fn variable(
    name: &str,
    source: &ValueSource,
    secrets: &ToolSecrets,
    used: &mut Vec<SecretValue>,
) -> Result<String, DefinitionFault> {
    let key = format!("env.{name}");
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err(DefinitionFault::new(key, "is not the name of a variable"));
    }
    let value = source.resolve(&key, secrets, used)?;
    if value.contains('\0') {
        return Err(DefinitionFault::new(key, "a variable can't have a NUL character"));
    }
    Ok(value)
}
