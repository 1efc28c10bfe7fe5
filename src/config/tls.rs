//! `[http.tls]`: the certificate of the service, and the callers that client certificates identify.

use super::error::ConfigError;
use super::sections::Sections;
use crate::http::TlsSettings;

/// Reads the settings of TLS, and refuses those that would have no effect.
pub(super) fn read(sections: &Sections<'_>) -> Result<TlsSettings, ConfigError> {
    let mut settings: TlsSettings = sections.read("http.tls")?;
    let invalid = |key: &str, problem: &str| Err(sections.invalid(&["http", "tls", key], problem));
    match (&settings.certificate, &settings.key) {
        (Some(_), None) => return invalid("certificate", "needs `http.tls.key` as well"),
        (None, Some(_)) => return invalid("key", "needs `http.tls.certificate` as well"),
        (None, None) if settings.client_ca.is_some() => {
            return invalid("client_ca", "has no effect without `http.tls.certificate`");
        }
        _ => (),
    }
    if settings.client_ca.is_none() && !settings.clients.is_empty() {
        return invalid("clients", "identifies nobody without `http.tls.client_ca`");
    }
    let clients = std::mem::take(&mut settings.clients).into_iter();
    // DNS names, which have no colon, are compared in lower case.
    let lower = |name: String| {
        if name.contains(':') {
            name
        } else {
            name.to_ascii_lowercase()
        }
    };
    settings.clients = clients.map(|(name, client)| (lower(name), client)).collect();
    Ok(settings)
}
