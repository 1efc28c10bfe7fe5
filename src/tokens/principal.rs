//! The caller whom a token names.

use std::sync::Arc;

use store::keys::Scope;
use values::clock::Timestamp;
use values::json::Object;
use values::limits::RunLimits;
use values::tenant::TenantId;

/// The caller whom a verified token names, and what it may do.
#[derive(Debug, Clone, PartialEq)]
pub struct Principal {
    /// The identity provider, as its tokens name it.
    pub issuer: Arc<str>,
    /// The subject.
    pub subject: String,
    /// The client to which the token was issued.
    pub client: Option<String>,
    /// The party that acts for the subject (RFC 8693).
    pub actor: Option<Object>,
    /// The tenant whose data the caller reads and writes.
    pub tenant: TenantId,
    /// The scopes.
    pub scopes: Vec<Scope>,
    /// The limits of each run, within those of the tenant.
    pub limits: RunLimits,
    /// When the token was issued.
    pub issued_at: Timestamp,
    /// When the token expires.
    pub expires_at: Timestamp,
    /// When it is no longer accepted: some leeway later.
    pub accepted_until: Timestamp,
}
