//! The files of TLS, and the callers that client certificates identify. Values only.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;

use store::keys::Scope;
use values::settings::optional_path;
use values::tenant::TenantId;

/// The settings of TLS.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct TlsSettings {
    /// The file with the certificate and its chain (PEM); `None` serves plain HTTP.
    #[serde(deserialize_with = "optional_path")]
    pub certificate: Option<PathBuf>,
    /// The file with the private key (PEM).
    #[serde(deserialize_with = "optional_path")]
    pub key: Option<PathBuf>,
    /// The oldest version of TLS that is accepted.
    pub min_version: TlsVersion,
    /// The file with the authorities (PEM) of client certificates; `None` asks for none.
    #[serde(deserialize_with = "optional_path")]
    pub client_ca: Option<PathBuf>,
    /// The callers, by a name of their certificates.
    #[serde(default)]
    pub clients: BTreeMap<String, TlsClient>,
}

/// A version of TLS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum TlsVersion {
    /// TLS 1.2 and 1.3.
    #[default]
    #[serde(rename = "1.2")]
    Tls12,
    /// TLS 1.3 alone.
    #[serde(rename = "1.3")]
    Tls13,
}

/// The permissions of a client certificate.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct TlsClient {
    /// The tenant whose data the certificate gives access to.
    pub tenant: TenantId,
    /// The scopes that it has.
    pub scopes: Vec<Scope>,
}

impl TlsSettings {
    /// Returns whether the service speaks TLS.
    pub fn is_on(&self) -> bool {
        self.certificate.is_some()
    }
}

/// A caller that its client certificate identifies. The connection adds it to each request.
#[derive(Debug, Clone)]
pub(super) struct CertifiedCaller(Arc<(String, TlsClient)>);

impl CertifiedCaller {
    /// Makes the caller with this name.
    pub(super) fn new(name: &str, client: &TlsClient) -> Self {
        Self(Arc::new((name.to_owned(), client.clone())))
    }

    /// Returns the name in the certificate that the table has.
    pub(super) fn name(&self) -> &str {
        &self.0.0
    }

    /// Returns its permissions.
    pub(super) fn client(&self) -> &TlsClient {
        &self.0.1
    }
}
