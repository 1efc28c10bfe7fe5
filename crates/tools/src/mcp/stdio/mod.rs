//! Servers that are processes of the service, in the sandbox: one line of JSON for each message.

mod endpoint;
mod error_log;
mod link;
mod starts;
mod transport;

pub(super) use self::endpoint::StdioEndpoint;
pub(super) use self::link::ProcessLink;
pub(super) use self::starts::Starts;
