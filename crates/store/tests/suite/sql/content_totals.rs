//! The total of a tenant's contents: it follows every change, and bounds what is written.

use std::sync::Arc;

use chrono::TimeDelta;
use futures_util::future::join_all;
use store::{ContentSettings, Store, StoreError, open_with};
use test_support::databases::TestDatabase;
use test_support::drafts::{now, tenant};
use test_support::workspaces::file;
use values::limits::{Limits, TenantLimits};
use workspace::Content;

use super::contents::noise;
use super::retention::KEEP_ALL;
use crate::fixtures::Fixture;

on_both_engines!(
    the_total_follows_every_change,
    a_tenant_stores_no_more_than_its_limit,
    writes_at_once_exceed_the_limit_by_one_each_at_most,
);

async fn with_limit(fixture: &Fixture, limit: u64) -> Arc<dyn Store> {
    let limited = TenantLimits {
        stored_file_bytes: Some(limit),
        ..TenantLimits::default()
    };
    let settings = ContentSettings {
        limits: Arc::new(Limits::new(
            TenantLimits::default(),
            [(fixture.tenant.clone(), limited)],
        )),
        ..ContentSettings::default()
    };
    open_with(fixture.database.url(), TestDatabase::settings(), &settings)
        .await
        .unwrap()
}

/// Checks that the stored totals are the sums of the contents.
async fn assert_totals(fixture: &Fixture) {
    let wrong = "(select tenant, sum(size) as bytes from contents group by tenant having sum(size) > 0) sums
        full join content_totals totals on totals.tenant = sums.tenant and totals.bytes = sums.bytes
        where sums.tenant is null or totals.tenant is null";
    assert_eq!(fixture.count(wrong).await, 0);
}

async fn the_total_follows_every_change(fixture: Fixture) {
    let other = tenant("other");
    let contents: Vec<Content> = (0..40_u64)
        .map(|seed| file(noise(seed, 100 + 10 * usize::try_from(seed).unwrap())))
        .collect();
    let writes = contents
        .chunks(7)
        .flat_map(|batch| [(&fixture.tenant, batch), (&other, batch), (&other, batch)]);
    join_all(writes.map(async |(tenant, batch)| fixture.store.content_put(tenant, batch).await.unwrap())).await;
    assert_totals(&fixture).await;
    let total = fixture.store.content_total(&fixture.tenant).await.unwrap();
    assert_eq!(
        total,
        contents.iter().map(|content| content.bytes.len() as u64).sum::<u64>()
    );
    fixture.put(&[file("")]).await;
    fixture.age_contents(120).await;
    fixture.put(&contents[..10]).await;
    assert_totals(&fixture).await;
    fixture.sweep(KEEP_ALL, now() + TimeDelta::minutes(5), 10).await;
    assert_eq!(fixture.count("contents").await, 10);
    assert_totals(&fixture).await;
    while fixture.store.tenant_remove(&fixture.tenant, 3, None).await.unwrap() > 0 {}
    assert_eq!(fixture.count("content_totals").await, 0);
    assert_eq!(fixture.store.content_total(&other).await.unwrap(), 0);
}

async fn a_tenant_stores_no_more_than_its_limit(fixture: Fixture) {
    let store = with_limit(&fixture, 1_000).await;
    let put = async |contents: &[Content]| store.content_put(&fixture.tenant, contents).await;
    let (first, second) = (file(noise(1, 600)), file(noise(2, 400)));
    put(&[first.clone(), first.clone()]).await.unwrap();
    let refused = put(&[file(noise(3, 401))]).await.unwrap_err();
    assert!(matches!(refused, StoreError::TenantFull { limit: 1_000 }), "{refused}");
    assert_eq!(fixture.count("contents").await, 1);
    // What is stored already takes no room.
    put(&[first.clone(), second.clone()]).await.unwrap();
    put(&[first, second]).await.unwrap();
    put(&[file("x")]).await.unwrap_err();
    assert_eq!(store.content_total(&fixture.tenant).await.unwrap(), 1_000);
    // The limit is of one tenant.
    store
        .content_put(&tenant("other"), &[file(noise(4, 5_000))])
        .await
        .unwrap();
    // A limit that was lowered leaves what is stored.
    let lower = with_limit(&fixture, 10).await;
    lower
        .content_put(&fixture.tenant, &[file(noise(1, 600))])
        .await
        .unwrap();
    lower.content_put(&fixture.tenant, &[file("x")]).await.unwrap_err();
    // A sweep makes room.
    fixture.sweep(KEEP_ALL, now() + TimeDelta::hours(3), 10).await;
    put(&[file(noise(5, 1_000))]).await.unwrap();
    lower.close().await;
    store.close().await;
}

async fn writes_at_once_exceed_the_limit_by_one_each_at_most(fixture: Fixture) {
    let store = with_limit(&fixture, 1_000).await;
    let writes = (0..20).map(async |seed| {
        let content = file(noise(seed, 300));
        store.content_put(&fixture.tenant, &[content]).await.is_ok()
    });
    let stored = join_all(writes)
        .await
        .into_iter()
        .filter(|is_stored| *is_stored)
        .count();
    assert!(stored >= 3, "{stored}");
    assert_eq!(fixture.count("contents").await, i64::try_from(stored).unwrap());
    assert_totals(&fixture).await;
    store
        .content_put(&fixture.tenant, &[file(noise(99, 300))])
        .await
        .unwrap_err();
    store.close().await;
}
