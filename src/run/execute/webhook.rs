//! The webhook messages about the end of a run. The transaction that ends the run stores them, and
//! the outbox sends them.

use crate::run::webhook_message::WebhookMessage;
use agent::ports::{RunWebhook, WebhookEvent};
use agent::record::{NewDelivery, RunRecord, RunStatus, RunView};
use values::ids::IdSource;
use values::tenant::TenantId;
use values::trace_context::TraceContext;

/// Creates the webhook messages about the end of a run. Called once for each end, since a repeated
/// commit must have the same message ids.
pub(in crate::run) fn deliveries_of(
    tenant: &TenantId,
    webhook: Option<&RunWebhook>,
    record: &RunRecord,
    trace: Option<TraceContext>,
    ids: &dyn IdSource,
) -> Vec<NewDelivery> {
    let event = event_of(record.summary.status);
    let is_wanted = |webhook: &&RunWebhook| webhook.events.is_empty() || webhook.events.contains(&event);
    let Some(webhook) = webhook.filter(is_wanted) else {
        return Vec::new();
    };
    let message = WebhookMessage {
        event,
        timestamp: record.summary.ended_at(),
        tenant,
        data: RunView::from(record.clone()),
    };
    let delivery = message.delivery(&webhook.url, webhook.secret.as_deref(), ids);
    let trace = trace.filter(|_| webhook.trace_context);
    let delivery = delivery.map(|delivery| NewDelivery { trace, ..delivery });
    delivery.into_iter().collect()
}

/// Returns the event of a final status. A status that is not final counts as failed.
fn event_of(status: RunStatus) -> WebhookEvent {
    match status {
        RunStatus::Completed => WebhookEvent::Completed,
        RunStatus::Stopped => WebhookEvent::Stopped,
        RunStatus::Waiting | RunStatus::Answered => WebhookEvent::Waiting,
        RunStatus::Cancelled => WebhookEvent::Cancelled,
        RunStatus::Failed | RunStatus::Queued | RunStatus::Running => WebhookEvent::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent::definition::Durability;
    use agent::record::{RunMode, RunSummary};
    use values::clock::Timestamp;
    use values::ids::{RunId, SessionId, UuidV7Source};
    use values::json::Object;
    use values::usage::Usage;

    fn record(status: RunStatus) -> RunRecord {
        let at: Timestamp = "2026-01-02T03:04:05.000006Z".parse().unwrap();
        let summary = RunSummary {
            run_id: RunId::generate(&UuidV7Source),
            session_id: SessionId::generate(&UuidV7Source),
            publishes: true,
            base_session_id: None,
            agent: "demo".to_owned(),
            agent_version: None,
            model: "demo/demo".parse().unwrap(),
            answered_by: None,
            mode: RunMode::Async,
            durability: Durability::default(),
            thread: None,
            thread_moved: None,
            attempts: 1,
            status,
            answer_run_id: None,
            stop_reason: None,
            usage: Usage::default(),
            step_count: 1,
            event_count: 9,
            error: None,
            metadata: Object::new(),
            created_by: None,
            created_at: at,
            started_at: Some(at),
            completed_at: Some(at + chrono::TimeDelta::seconds(1)),
        };
        RunRecord::without_output(summary)
    }

    fn webhook(events: &[WebhookEvent]) -> RunWebhook {
        RunWebhook {
            url: "https://example.org/ends".to_owned(),
            events: events.to_vec(),
            secret: Some("main".to_owned()),
            trace_context: true,
        }
    }

    #[test]
    fn each_end_is_sent_to_webhooks_that_want_it() {
        for (status, event) in [
            (RunStatus::Completed, WebhookEvent::Completed),
            (RunStatus::Stopped, WebhookEvent::Stopped),
            (RunStatus::Waiting, WebhookEvent::Waiting),
            (RunStatus::Failed, WebhookEvent::Failed),
            (RunStatus::Cancelled, WebhookEvent::Cancelled),
        ] {
            let record = record(status);
            let sent = |webhook: Option<&RunWebhook>| {
                let deliveries = deliveries_of(&TenantId::anonymous(), webhook, &record, None, &UuidV7Source);
                deliveries.iter().map(|delivery| delivery.event).collect::<Vec<_>>()
            };
            let others: Vec<_> = WebhookEvent::ENDS.into_iter().filter(|other| *other != event).collect();
            assert_eq!(sent(None), []);
            assert_eq!(sent(Some(&webhook(&[]))), [event]);
            assert_eq!(sent(Some(&webhook(&[event]))), [event]);
            assert_eq!(sent(Some(&webhook(&WebhookEvent::ENDS))), [event]);
            assert_eq!(sent(Some(&webhook(&others))), []);
        }
    }

    #[test]
    fn a_webhook_message_has_the_event_its_time_and_the_tenant() {
        let record = record(RunStatus::Stopped);
        let tenant: TenantId = "acme".parse().unwrap();
        let deliveries = deliveries_of(&tenant, Some(&webhook(&[])), &record, None, &UuidV7Source);
        let [delivery] = &deliveries[..] else {
            panic!("{deliveries:?}")
        };
        assert_eq!(
            (delivery.url.as_str(), delivery.secret.as_deref()),
            ("https://example.org/ends", Some("main"))
        );
        assert_eq!(Some(delivery.created_at), record.summary.completed_at);
        let body: values::json::Value = serde_json::from_str(&delivery.body).unwrap();
        assert_eq!(
            (&body["type"], &body["timestamp"], &body["tenant"]),
            (
                &"run.stopped".into(),
                &"2026-01-02T03:04:06.000006Z".into(),
                &"acme".into()
            )
        );
        assert_eq!(body["data"], serde_json::to_value(RunView::from(record)).unwrap());
    }
}
