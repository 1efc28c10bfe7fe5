//! Streamable HTTP through the guard of outgoing requests.

mod body;
mod client;
mod credentials;
mod endpoint;
mod events;
mod text;
mod token;

pub(super) use self::endpoint::HttpEndpoint;
pub(super) use self::token::TokenError;
