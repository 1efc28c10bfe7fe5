//! The certificate of the service: its first read, and its replacements.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use crate::app::App;
use crate::http::{Reload, Tls, TlsSettings};
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
    if let Some(metrics) = &app.runs.metrics {
        metrics.tls.set_last_reload(true);
    }
    Ok(Some(Arc::new(tls)))
}

/// Replaces the certificate whenever its files have other contents.
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
        let result = match spawn_blocking(move || tls.reload(now)).await {
            Ok(result) => result,
            Err(error) => {
                tracing::error!(error = error.to_string(), "reading the certificate was cut short");
                continue;
            }
        };
        if let Some(metrics) = &app.runs.metrics {
            metrics.tls.set_last_reload(result.is_ok());
        }
        let failure = result.as_ref().err().map(|error| with_causes(error));
        match &result {
            Ok(Reload::Replaced { expires_at }) => {
                show_expiry(app, *expires_at);
                tracing::info!(%expires_at, "the certificate was replaced");
            }
            // Unusable files are read again and again.
            Err(error) if is_signal || reported != failure => tracing::error!(
                error = error as &dyn std::error::Error,
                "the files of TLS can't be used, so the certificate stays as it was"
            ),
            Ok(Reload::Unchanged) | Err(_) => (),
        }
        reported = failure;
    }
}

fn show_expiry(app: &App, expires_at: Timestamp) {
    if let Some(metrics) = &app.runs.metrics {
        metrics.tls.set_expiry(expires_at.timestamp());
    }
}
