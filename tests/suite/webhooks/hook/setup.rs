//! A service whose agent has a webhook.

use std::sync::Arc;

use agent::hooks::HookRegistry;
use serde_json::json;
use test_support::databases::TestDatabase;
use tools::webhooks::{SenderSettings, WebhookHookFactory, WebhookSender};
use values::json::Value;

use crate::support::mock_model::MockModel;
use crate::support::test_app::TestApp;
use crate::support::webhook_receiver::WebhookReceiver;

/// Lets webhooks reach receivers on this machine.
pub(super) const LOCAL: [(&str, &str); 2] = [
    ("webhooks.allow_private_addresses", "true"),
    ("webhooks.allow_http", "true"),
];

/// Returns the hook `webhook` alone, which reaches receivers on this machine.
pub(super) fn webhook_hooks() -> HookRegistry {
    let settings = SenderSettings {
        allow_private_addresses: true,
        allow_http: true,
        ..SenderSettings::default()
    };
    let sender = Arc::new(WebhookSender::new(settings).unwrap());
    HookRegistry::new([Box::new(WebhookHookFactory::new(sender, [].into())) as _])
}

/// A service with its store and its model.
pub(super) struct Service {
    pub(super) app: TestApp,
    pub(super) mock: MockModel,
    _database: TestDatabase,
}

impl Service {
    /// Starts the service with these settings.
    pub(super) async fn start(mock: MockModel, settings: &[(&str, &str)]) -> Self {
        let database = TestDatabase::sqlite();
        let app = TestApp::start(database.url(), &mock, settings).await;
        Self {
            app,
            mock,
            _database: database,
        }
    }

    /// Makes the agent `hooked` with a webhook at the points and further configuration.
    pub(super) async fn attach(&self, url: &str, points: &[&str], more: &Value) {
        self.app.put_agent("hooked", agent(url, points, more)).await;
    }

    /// Runs the agent `hooked` and returns the result.
    pub(super) async fn run(&self, input: &str) -> Value {
        self.app.run_with(json!({"agent": "hooked", "input": input})).await
    }
}

/// Returns the definition of an agent with a calculator and a webhook.
pub(super) fn agent(url: &str, points: &[&str], more: &Value) -> Value {
    let mut config = json!({"url": url, "points": points});
    for (key, value) in more.as_object().unwrap() {
        config[key] = value.clone();
    }
    json!({"model": "mock/m", "tools": ["calculator"], "hooks": [{"name": "webhook", "config": config}]})
}

/// Starts a service whose agent has a webhook of the receiver at the points.
pub(super) async fn hooked(mock: MockModel, receiver: &WebhookReceiver, points: &[&str]) -> Service {
    let service = Service::start(mock, &LOCAL).await;
    service.attach(&receiver.url("/hook"), points, &json!({})).await;
    service
}
