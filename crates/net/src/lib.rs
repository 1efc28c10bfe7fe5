//! Outgoing requests. Everything that the service or an agent's command sends to the outside passes
//! through here, and nothing else decides which addresses it may reach.

pub mod egress;
pub mod http_client;
pub mod outgoing;
