//! One exchange with the agent's models: fallbacks, failures, and the cost of providers' tools.

mod failures;
mod fallbacks;
mod provider_tools;
