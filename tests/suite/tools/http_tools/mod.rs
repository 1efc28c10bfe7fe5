//! HTTP tools over real sockets: from a definition and arguments to a request and a result.

mod definitions;
mod openapi;
mod requests;
mod responses;
mod secrets;

use std::sync::Arc;
use std::time::Duration;

use agent::ports::Tool;
use net::outgoing::{ClientSettings, NameResolver, OutgoingClient, SystemResolver};
use tools::{HttpToolDefinition, ToolSecrets, http_tools};
use values::clock::{Clock, SystemClock};
use values::json::Value;

/// The secret that the definitions of these tests name.
const SECRET: &str = "s3cr3t/t0ken\"&";

/// Makes the tools of a definition in TOML. `SERVER` in it stands for a server on this machine.
fn tools(definition: &str, server: &str, document: Option<&Value>) -> Result<Vec<Arc<dyn Tool>>, String> {
    tools_with(definition, server, document, Arc::new(SystemResolver))
}

/// Makes them with a resolver of names.
fn tools_with(
    definition: &str,
    server: &str,
    document: Option<&Value>,
    resolver: Arc<dyn NameResolver>,
) -> Result<Vec<Arc<dyn Tool>>, String> {
    let local = "allow_http = true\nallow_networks = [\"127.0.0.1\"]\n";
    let definition = format!("{local}{}", definition.replace("SERVER", server));
    let definition: HttpToolDefinition = toml::from_str(&definition).map_err(|error| error.message().to_owned())?;
    let settings = ClientSettings {
        connect_timeout: Duration::from_secs(30),
        decompress: true,
    };
    let client = OutgoingClient::new(definition.rules(), settings, resolver).unwrap();
    let secrets = ToolSecrets::from([
        ("main".to_owned(), Some(SECRET.into())),
        ("unset".to_owned(), None),
        ("broken".to_owned(), Some("two\nlines of it".into())),
    ]);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    http_tools(&definition, document, &secrets, &client, &clock).map_err(|fault| fault.to_string())
}

/// Makes the only tool of a definition.
fn tool(definition: &str, server: &str) -> Arc<dyn Tool> {
    tool_with(definition, server, Arc::new(SystemResolver))
}

/// Makes it with a resolver of names.
pub(super) fn tool_with(definition: &str, server: &str, resolver: Arc<dyn NameResolver>) -> Arc<dyn Tool> {
    let mut tools = tools_with(definition, server, None, resolver).unwrap();
    assert_eq!(tools.len(), 1);
    tools.remove(0)
}
