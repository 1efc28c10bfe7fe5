//! Reads certificates: when they expire, and the names of clients.

use chrono::DateTime;
use rustls::pki_types::CertificateDer;
use x509_parser::extensions::GeneralName;
use x509_parser::parse_x509_certificate;

use values::clock::Timestamp;

/// Returns when a certificate expires; `None` if it can't be read.
pub(super) fn expiry(certificate: &CertificateDer<'_>) -> Option<Timestamp> {
    let (_, certificate) = parse_x509_certificate(certificate.as_ref()).ok()?;
    DateTime::from_timestamp(certificate.validity().not_after.timestamp(), 0)
}

/// Returns the alternative names of a certificate that are URIs or DNS names, in its order. DNS
/// names are in lower case. The common name is not one of them.
pub(super) fn client_names(certificate: &CertificateDer<'_>) -> Vec<String> {
    let Ok((_, certificate)) = parse_x509_certificate(certificate.as_ref()) else {
        return Vec::new();
    };
    let Ok(Some(names)) = certificate.subject_alternative_name() else {
        return Vec::new();
    };
    let names = names.value.general_names.iter().filter_map(|name| match name {
        // Only a URI has a colon, so no DNS name can pass for one.
        GeneralName::URI(uri) if uri.contains(':') => Some((*uri).to_owned()),
        GeneralName::DNSName(name) if !name.contains(':') => Some(name.to_ascii_lowercase()),
        _ => None,
    });
    names.collect()
}
