//! Outgoing requests. Everything that the service or an agent's command sends to the outside passes
//! through here, and nothing else decides which addresses it may reach. Knows nothing of agents,
//! tools and stores.

pub mod egress;
pub mod http_client;
pub mod outgoing;
pub mod trace_header;
