//! The certificate of the service.

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::registration::Registration;

/// Metrics of TLS.
#[derive(Debug)]
pub struct TlsMetrics {
    expiry: Family<Bare, Gauge>,
    last_reload: Family<Bare, Gauge>,
}

/// No labels. A family with them can be without a value.
type Bare = [(&'static str, &'static str); 0];

impl TlsMetrics {
    pub(super) fn register(registration: &mut Registration) -> Self {
        let expiry = Family::default();
        registration.add(
            "tls_certificate_expiry_timestamp_seconds",
            &[],
            "When the certificate in force expires, in seconds since 1970; absent without TLS",
            &expiry,
        );
        let last_reload = Family::default();
        registration.add(
            "tls_last_reload_successful",
            &[],
            "1 if the files of TLS could be used when they were last read, else 0; absent without TLS",
            &last_reload,
        );
        Self { expiry, last_reload }
    }

    /// Sets when the certificate in force expires, in seconds since 1970.
    pub fn set_expiry(&self, seconds: i64) {
        self.expiry.get_or_create(&[]).set(seconds);
    }

    /// Sets whether the files could be used when they were last read.
    pub fn set_last_reload(&self, is_successful: bool) {
        self.last_reload.get_or_create(&[]).set(is_successful.into());
    }
}
