//! Routes of agents.

mod definitions;
mod reload;
mod routes;
