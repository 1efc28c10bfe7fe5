//! Tokens of identity providers: JWTs that are verified with the public keys of their issuer.
//!
//! An *issuer* of the configuration pins everything that a token could choose by itself: the
//! algorithms, the audience, the type, and the claims with the tenant and the scopes.
//!
//! - `unverified.rs` reads the parts of a token. Nothing in them is trusted yet.
//! - `key_source.rs` has the keys of an issuer, and reads them again in the background.
//! - `issuer.rs` checks a token: first its header, then its signature, then its claims.
//! - `verifier.rs` finds the issuer of a token, and caches verified tokens.
//!
//! Knows neither HTTP requests nor revocations; `http` has both.

mod verifier;

mod claims;
mod issuer;
mod key_source;
mod unverified;

mod fetch;
mod key_set;
mod public_key;

mod algorithm;
mod fault;
mod principal;
mod settings;

pub use self::fault::TokenFault;
pub use self::fetch::{Fetch, FetchError, HttpFetch, is_secure};
pub use self::principal::Principal;
pub use self::settings::{IssuerFault, IssuerSettings, MAX_LIFETIME, TokenSettings};
pub use self::verifier::Tokens;
