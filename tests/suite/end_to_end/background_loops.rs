//! The loops that lease runs and renew their leases: one that panics is noticed and begun again,
//! and readiness says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use test_support::databases::TestDatabase;
use test_support::logs::listen;
use test_support::wait::until;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt as _};

use crate::support::gated::GatedApp;
use crate::support::members::assert_members;
use crate::support::text::assert_contains;

/// Panics once, in the code that logs this effect of an outage.
struct PanicAt {
    effect: &'static str,
    has_panicked: Arc<AtomicBool>,
}

struct Effect(Option<String>);

impl Visit for Effect {
    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "effect" {
            self.0 = Some(value.to_owned());
        }
    }
}

impl<S: Subscriber> Layer<S> for PanicAt {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut effect = Effect(None);
        event.record(&mut effect);
        let is_first = effect.0.as_deref() == Some(self.effect) && !self.has_panicked.swap(true, Ordering::SeqCst);
        assert!(!is_first, "the loop that logs {:?} panics", self.effect);
    }
}

/// Hides the queue until the loop has panicked, then brings it back, and waits until the process is
/// ready again.
async fn panic_once(database: &TestDatabase, app: &GatedApp, name: &str, has_panicked: &AtomicBool) {
    database
        .execute("alter table run_queue rename to hidden_queue")
        .await
        .unwrap();
    until("the loop does not panic", async || has_panicked.load(Ordering::SeqCst)).await;
    database
        .execute("alter table hidden_queue rename to run_queue")
        .await
        .unwrap();
    until("the panic goes unnoticed", async || {
        app.try_get("/readyz").await.status == 503
    })
    .await;
    let answer = app.try_get("/readyz").await;
    answer.assert_problem("not_ready");
    assert_contains!(answer.text(), &format!("restarted: {name}"));
}

#[tokio::test]
async fn a_worker_whose_loop_panics_reports_it_and_goes_on_leasing_runs() {
    let has_panicked = Arc::new(AtomicBool::new(false));
    let panicking = PanicAt {
        effect: "no runs are taken from the queue",
        has_panicked: Arc::clone(&has_panicked),
    };
    let _listening = listen(tracing_subscriber::registry().with(panicking));
    let database = TestDatabase::sqlite();
    let app = GatedApp::start(&database, &[("queue.poll_interval", "100ms")]).await;
    panic_once(&database, &app, "lease runs", &has_panicked).await;
    let run = app.begin("hi", json!({})).await;
    assert_eq!(app.ended(&run).await["status"], "completed");
    until("the process does not become ready", async || {
        app.try_get("/readyz").await.status == 200
    })
    .await;
    app.finish().await;
}

#[tokio::test]
async fn a_lease_outlives_a_panic_of_the_loop_that_renews_it() {
    let has_panicked = Arc::new(AtomicBool::new(false));
    let panicking = PanicAt {
        effect: "leases are not renewed",
        has_panicked: Arc::clone(&has_panicked),
    };
    let _listening = listen(tracing_subscriber::registry().with(panicking));
    let database = TestDatabase::sqlite();
    let app = GatedApp::start(&database, &[("queue.lease", "15s")]).await;
    let run = app.begin("wait", json!({})).await;
    app.gate.until_waiting(1).await;
    panic_once(&database, &app, "renew leases", &has_panicked).await;
    // Longer than a lease: without renewals another attempt would begin.
    until("the process does not become ready", async || {
        app.try_get("/readyz").await.status == 200
    })
    .await;
    app.gate.open(1);
    let ended = app.ended(&run).await;
    assert_members!(ended, {"status": "completed", "attempts": 1});
    app.finish().await;
}
