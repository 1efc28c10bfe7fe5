//! The certificate of the service: its first read, and its replacements.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use crate::app::App;
use crate::http::{Reload, Tls, TlsError, TlsSettings};
use crate::lifecycle::ReloadSignals;
use values::causes::with_causes;
use values::clock::Timestamp;

/// How often the files are read. Their contents are compared, since a change of a link, as in a
/// volume of Kubernetes, does not concern the file that a watch would see.
const INTERVAL: Duration = Duration::from_secs(10);

/// Reads the certificate. `None` if TLS is off.
pub(super) fn load(settings: &TlsSettings, app: &App) -> anyhow::Result<Option<Arc<Tls>>> {
    let loaded = Tls::load(settings).context("TLS can't be used as `http.tls` demands")?;
    let Some((tls, expires_at)) = loaded else {
        return Ok(None);
    };
    if expires_at <= app.runs.clock.now() {
        tracing::warn!(%expires_at, "the certificate has expired");
    }
    show_expiry(app, expires_at);
    Ok(Some(Arc::new(tls)))
}

/// Replaces the certificate whenever its files have other contents, and tries them at each signal.
pub(super) async fn reload(app: &App, tls: Option<Arc<Tls>>, mut signals: ReloadSignals) -> Infallible {
    let Some(tls) = tls else {
        return std::future::pending().await;
    };
    let mut reported = None;
    loop {
        let is_signal = tokio::select! {
            () = sleep(INTERVAL) => false,
            () = signals.next() => true,
        };
        let (tls, now) = (Arc::clone(&tls), app.runs.clock.now());
        match spawn_blocking(move || tls.reload(now, is_signal)).await {
            Ok(Ok(Reload::Unchanged)) => (),
            Ok(Ok(Reload::Replaced { expires_at })) => {
                reported = None;
                show_expiry(app, expires_at);
                tracing::info!(%expires_at, "the certificate was replaced");
            }
            Ok(Err(error)) => {
                // A missing file is read in vain again and again.
                let words = with_causes(&error);
                if is_signal || reported.as_ref() != Some(&words) {
                    report_failure(app, &error);
                }
                reported = Some(words);
            }
            Err(error) => tracing::error!(error = error.to_string(), "reading the certificate was cut short"),
        }
    }
}

fn report_failure(app: &App, error: &TlsError) {
    if let Some(metrics) = &app.runs.metrics {
        metrics.tls.reload_failed();
    }
    tracing::error!(
        error = error as &dyn std::error::Error,
        "the files of TLS can't be used, so the certificate stays as it was"
    );
}

fn show_expiry(app: &App, expires_at: Timestamp) {
    if let Some(metrics) = &app.runs.metrics {
        metrics.tls.set_expiry(expires_at.timestamp());
    }
}
