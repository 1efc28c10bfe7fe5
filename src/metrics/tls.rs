//! The certificate of the service.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::registration::Registration;

/// Metrics of TLS.
#[derive(Debug)]
pub struct TlsMetrics {
    expiry: Family<Bare, Gauge>,
    failed_reloads: Counter,
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
        let failed_reloads = Counter::default();
        registration.add(
            "tls_reload_failures",
            &[],
            "Changed certificates that could not be used",
            &failed_reloads,
        );
        Self { expiry, failed_reloads }
    }

    /// Sets when the certificate in force expires, in seconds since 1970.
    pub fn set_expiry(&self, seconds: i64) {
        self.expiry.get_or_create(&[]).set(seconds);
    }

    /// Counts files that could not be used.
    pub fn reload_failed(&self) {
        self.failed_reloads.inc();
    }
}
