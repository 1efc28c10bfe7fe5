//! Renews the reservations of this process, gives back what has expired, and tells receivers how
//! much of a limit is spent.

use std::collections::BTreeSet;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::time::{MissedTickBehavior, interval};

use super::LIFETIME;
use crate::run::context::RunContext;
use crate::run::webhook_message::WebhookMessage;
use agent::ports::WebhookEvent;
use agent::record::NewDelivery;
use store::StoreError;
use store::spend::SpendNews;
use values::clock::Timestamp;
use values::limits::{SpendPeriod, SpendWebhook};
use values::usage::Cost;

/// The pause between two rounds.
const PERIOD: Duration = Duration::from_secs(20);
/// The parts of a limit that are reported, in percent.
const PARTS: [i16; 3] = [100, 80, 50];

/// How much of a limit is spent.
#[derive(Serialize)]
struct MessageData<'a> {
    /// The runs that the limit counts: `tenant`, `agent:NAME` or `key:ID`.
    scope: &'a str,
    /// The period: `2026-12-01` or `2026-12`.
    period: &'a str,
    /// The part that is spent at least.
    percent: i16,
    /// US dollars.
    limit: Cost,
    spent: Cost,
}

/// Keeps reservations in order until the last run of the process has ended.
pub(in crate::run) async fn keep_reservations(ctx: Arc<RunContext>) {
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = ctx.process.tasks.ended.cancelled() => return,
            _ = ticks.tick() => {}
        }
        if let Err(error) = round(&ctx).await {
            tracing::warn!(error = &error as &dyn Error, "reservations are renewed and swept later");
        }
    }
}

async fn round(ctx: &RunContext) -> Result<(), StoreError> {
    let reserved = ctx.process.active.reserved();
    if !reserved.is_empty() {
        ctx.process.leases.read_time(&*ctx.store).await;
        ctx.store
            .spend_renew(&reserved, ctx.process.leases.now() + LIFETIME)
            .await?;
    }
    let expired = ctx.store.spend_sweep(ctx.process.leases.now()).await?;
    if expired > 0 {
        tracing::info!(expired, "reservations of spending have expired, and are given back");
    }
    report(ctx).await
}

/// Stores the messages about limits of which more is spent than was reported.
async fn report(ctx: &RunContext) -> Result<(), StoreError> {
    let receivers = ctx.limits.all().filter(|limits| limits.spend_webhook.is_some());
    let (now, mut periods) = (ctx.clock.now(), BTreeSet::new());
    for limits in receivers {
        let today = now.with_timezone(&limits.time_zone).date_naive();
        periods.extend(SpendPeriod::ALL.map(|period| period.name_of(today)));
    }
    if periods.is_empty() {
        return Ok(());
    }
    let periods: Vec<_> = periods.into_iter().collect();
    let news = ctx.store.spend_news(&periods, i64::from(PARTS[2])).await?;
    for news in news {
        let limits = ctx.limits.of(&news.tenant);
        let Some(webhook) = &limits.spend_webhook else { continue };
        let Some(percent) = part_to_report(&news) else { continue };
        let Some(delivery) = delivery(ctx, &news, percent, webhook, now) else {
            continue;
        };
        if ctx.store.spend_notify(&news, percent, &delivery).await? {
            ctx.outbox.notify_one();
        }
    }
    Ok(())
}

/// Returns the largest part that is spent, unless it was reported.
fn part_to_report(news: &SpendNews) -> Option<i16> {
    let (spent, most) = (
        i128::from(news.spent.microdollars()),
        i128::from(news.most.microdollars()),
    );
    let spent_part = PARTS.into_iter().find(|part| spent * 100 >= most * i128::from(*part));
    spent_part.filter(|part| *part > news.notified)
}

fn delivery(
    ctx: &RunContext,
    news: &SpendNews,
    percent: i16,
    webhook: &SpendWebhook,
    timestamp: Timestamp,
) -> Option<NewDelivery> {
    let message = WebhookMessage {
        event: WebhookEvent::SpendThreshold,
        timestamp,
        tenant: &news.tenant,
        data: MessageData {
            scope: &news.scope,
            period: &news.period,
            percent,
            limit: news.most,
            spent: news.spent,
        },
    };
    message.delivery(&webhook.url, webhook.secret.as_deref(), &*ctx.ids)
}

#[cfg(test)]
mod tests {
    use super::*;
    use values::tenant::TenantId;

    #[test]
    fn the_largest_spent_part_is_reported_once() {
        for (spent, notified, expected) in [
            (0.49, 0, None),
            (0.5, 0, Some(50)),
            (0.79, 50, None),
            (0.8, 50, Some(80)),
            // Two parts are passed at once.
            (1.2, 50, Some(100)),
            (1.2, 100, None),
        ] {
            let news = SpendNews {
                tenant: TenantId::anonymous(),
                scope: "tenant".to_owned(),
                period: "2026-12".to_owned(),
                most: Cost::from_dollars(1.0).unwrap(),
                spent: Cost::from_dollars(spent).unwrap(),
                notified,
            };
            assert_eq!(part_to_report(&news), expected, "{spent} {notified}");
        }
    }
}
