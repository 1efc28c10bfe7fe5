//! Contents in S3, Google Cloud Storage and Azure: the requests are right, failed requests are
//! repeated, and what can't be repaired is an error.

use std::error::Error;
use std::sync::Arc;

use chrono::TimeDelta;
use store::objects::OpenObjectsError;
use store::{OpenError, Store, StoreError, open_with};
use test_support::databases::TestDatabase;
use test_support::drafts::now;
use test_support::gate::Gate;
use test_support::object_server::{Fault, ObjectServer, Protocol};

use super::objects::{contents_in, large, later, load, load_from, opened, put, put_into};
use super::retention::KEEP_ALL;
use crate::fixtures::Fixture;

on_both_engines!(
    an_object_that_a_sweep_has_claimed_is_never_taken,
    large_contents_are_in_s3,
    large_contents_are_in_google_cloud_storage,
    large_contents_are_in_azure,
    settings_that_no_client_can_have_are_errors_at_the_start,
);

/// Opens a store on the server, with the timeout of an attempt.
async fn on_server(fixture: &Fixture, server: &ObjectServer, timeout: &'static str) -> Arc<dyn Store> {
    let mut options = server.options();
    options.push((server.timeout(), timeout.to_owned()));
    opened(fixture, server.url(), options).await
}

async fn an_object_that_a_sweep_has_claimed_is_never_taken(fixture: Fixture) {
    let server = ObjectServer::start(Protocol::S3).await.unwrap();
    let store = on_server(&fixture, &server, "30s").await;
    let fixture = Fixture { store, ..fixture };
    let gate = Gate::new();
    server.fail_next([Fault::Held(Arc::clone(&gate))]);
    let (store, tenant, content) = (Arc::clone(&fixture.store), fixture.tenant.clone(), large(1));
    let writing = tokio::spawn(async move { store.content_put(&tenant, &[content]).await });
    gate.until_waiting(1).await;
    // The clock of this sweep is hours ahead, so the write looks abandoned.
    fixture.sweep(KEEP_ALL, later(), 10).await;
    assert_eq!(server.objects().await, [""; 0]);
    gate.open(1);
    let failed = writing.await.unwrap().unwrap_err();
    assert!(matches!(failed, StoreError::Failed { .. }), "{failed}");
    assert_eq!(fixture.count("contents").await, 0);
    put(&fixture, &large(1)).await.unwrap();
    assert_eq!(load(&fixture, &large(1)).await.unwrap(), Some(large(1)));
}

async fn large_contents_are_in_s3(fixture: Fixture) {
    all(fixture, Protocol::S3).await;
}

async fn large_contents_are_in_google_cloud_storage(fixture: Fixture) {
    all(fixture, Protocol::Google).await;
}

async fn large_contents_are_in_azure(fixture: Fixture) {
    all(fixture, Protocol::Azure).await;
}

async fn all(fixture: Fixture, protocol: Protocol) {
    let Some(server) = ObjectServer::start(protocol).await else {
        return;
    };
    let store = on_server(&fixture, &server, "30s").await;
    let fixture = Fixture { store, ..fixture };
    objects_are_written_read_and_deleted(&fixture, &server).await;
    requests_that_fail_are_repeated_a_few_times(&fixture, &server).await;
    an_outage_is_over_one_day(&fixture, &server).await;
    what_is_refused_or_damaged_is_an_error(&fixture, &server).await;
    wrong_settings_are_errors(&fixture, &server).await;
    fixture.store.close().await;
}

/// Removes all contents with their objects.
async fn clear(fixture: &Fixture, server: &ObjectServer) {
    fixture.execute("delete from contents").await;
    fixture.sweep(KEEP_ALL, later() + TimeDelta::hours(3), 10).await;
    assert_eq!(server.objects().await, [""; 0]);
    assert_eq!(fixture.count("content_objects").await, 0);
}

async fn objects_are_written_read_and_deleted(fixture: &Fixture, server: &ObjectServer) {
    let content = large(1);
    put(fixture, &content).await.unwrap();
    assert_eq!(load(fixture, &content).await.unwrap(), Some(content.clone()));
    let object = server.objects().await.remove(0);
    let beginning = format!("pre/fix/acme/{}/", content.hash);
    assert!(
        object.starts_with(&beginning) && object.len() == beginning.len() + 32,
        "{object}"
    );
    fixture.sweep(KEEP_ALL, later(), 10).await;
    assert_eq!(server.objects().await, [""; 0]);
    let requests = server.requests();
    let lines: Vec<_> = requests
        .iter()
        .map(|(method, key, _)| (method.as_str(), key.as_str()))
        .collect();
    // Azure has one request for several objects.
    let delete = if server.url().starts_with("az:") {
        ("POST", "")
    } else {
        ("DELETE", &*object)
    };
    assert_eq!(lines, [("PUT", &*object), ("GET", &object), delete]);
    for (_, _, authorization) in requests {
        assert!(authorization.starts_with(&server.authorization()), "{authorization}");
    }
}

async fn requests_that_fail_are_repeated_a_few_times(fixture: &Fixture, server: &ObjectServer) {
    let content = large(1);
    server.fail_next([Fault::Status(503), Fault::Status(500)]);
    put(fixture, &content).await.unwrap();
    let hasty = on_server(fixture, server, "1s").await;
    for faults in [
        vec![Fault::Status(503)],
        vec![Fault::Silence],
        // The rest of the object is read by its range.
        vec![Fault::Cut],
        vec![Fault::Cut, Fault::Status(503)],
    ] {
        server.fail_next(faults.clone());
        let loaded = load_from(&hasty, &fixture.tenant, &content).await;
        assert_eq!(loaded.unwrap(), Some(content.clone()), "{faults:?}");
    }
    hasty.close().await;
    assert_eq!(fixture.count("content_objects").await, 0);
    // The object is deleted, but the reply is lost. The next sweep finds no object.
    fixture.execute("delete from contents").await;
    server.fail_next([Fault::Cut]);
    fixture.sweep(KEEP_ALL, now(), 10).await;
    assert_eq!(server.objects().await, [""; 0]);
    clear(fixture, server).await;
}

async fn an_outage_is_over_one_day(fixture: &Fixture, server: &ObjectServer) {
    let content = large(1);
    put(fixture, &content).await.unwrap();
    // An outage fails the write; it can be repeated when the outage is over.
    server.fail_always(Some(Fault::Status(503)));
    let before = server.requests().len();
    let failed = put(fixture, &large(2)).await.unwrap_err();
    assert!(failed.is_transient(), "{failed}");
    assert_eq!(server.requests().len() - before, 5);
    let failed = load(fixture, &content).await.unwrap_err();
    assert!(failed.is_transient(), "{failed}");
    assert_eq!(fixture.counts(["contents", "content_objects"]).await, [1, 1]);
    // A sweep in an outage leaves the objects to the next one.
    fixture.execute("delete from contents").await;
    fixture.sweep(KEEP_ALL, later() + TimeDelta::hours(3), 10).await;
    assert_eq!(fixture.count("content_objects").await, 2);
    server.fail_always(None);
    clear(fixture, server).await;
    put(fixture, &large(2)).await.unwrap();
    assert_eq!(load(fixture, &large(2)).await.unwrap(), Some(large(2)));
    clear(fixture, server).await;
}

async fn what_is_refused_or_damaged_is_an_error(fixture: &Fixture, server: &ObjectServer) {
    let content = large(1);
    put(fixture, &content).await.unwrap();
    server.fail_next([Fault::OtherBytes]);
    let damaged = load(fixture, &content).await.unwrap_err();
    assert!(
        matches!(damaged, StoreError::Corrupt { column: "payload", .. }),
        "{damaged}"
    );
    server.fail_next([Fault::Status(404)]);
    let lost = load(fixture, &content).await.unwrap_err();
    assert!(matches!(lost, StoreError::Corrupt { column: "payload", .. }), "{lost}");
    // With wrong credentials, nothing is written or read, and no message has them.
    let mut options = server.options();
    options.push(server.wrong_credentials());
    let denied = opened(fixture, server.url(), options).await;
    let errors = [
        put_into(&denied, &fixture.tenant, &large(2)).await.unwrap_err(),
        load_from(&denied, &fixture.tenant, &content).await.unwrap_err(),
    ];
    for error in errors {
        let text = chain(&error);
        assert!(matches!(error, StoreError::Failed { .. }), "{text}");
        assert!(text.contains("40"), "{text}");
        assert!(!text.contains(&server.wrong_credentials().1), "{text}");
    }
    denied.close().await;
    assert_eq!(fixture.count("contents").await, 1);
    assert_eq!(load(fixture, &content).await.unwrap(), Some(content));
    clear(fixture, server).await;
}

async fn wrong_settings_are_errors(fixture: &Fixture, server: &ObjectServer) {
    let (scheme, _) = server.url().split_once("://").unwrap();
    let elsewhere = format!("{scheme}://nowhere/pre/fix");
    let other = opened(fixture, &elsewhere, server.options()).await;
    let error = put_into(&other, &fixture.tenant, &large(1)).await.unwrap_err();
    let text = chain(&error);
    assert!(matches!(error, StoreError::Failed { .. }), "{text}");
    assert!(text.contains("404") || text.contains("NotFound"), "{text}");
    other.close().await;
    // An address without TLS has to be allowed.
    let secure = server
        .options()
        .into_iter()
        .filter(|(name, _)| !name.ends_with("_ALLOW_HTTP"));
    let secure = opened(fixture, server.url(), secure.collect()).await;
    let error = put_into(&secure, &fixture.tenant, &large(1)).await.unwrap_err();
    let text = chain(&error);
    assert!(text.contains("URL scheme is not allowed"), "{text}");
    secure.close().await;
    clear(fixture, server).await;
}

async fn settings_that_no_client_can_have_are_errors_at_the_start(fixture: Fixture) {
    for (url, name, value, words) in [
        (
            "az://box",
            "azure_storage_account_key",
            "a2V5",
            "Account must be specified",
        ),
        (
            "az://box.core",
            "azure_storage_account_name",
            "acme",
            "URL did not match any known pattern",
        ),
        (
            "gs://box",
            "google_service_account",
            "/nonexistent.json",
            "/nonexistent.json",
        ),
        (
            "gs://box",
            "google_service_account_key",
            "{}",
            "Unable to decode service account file",
        ),
        (
            "s3://box",
            "aws_allow_http",
            "perhaps",
            "failed to parse \"perhaps\" as boolean",
        ),
    ] {
        let settings = contents_in(url, vec![(name, value.to_owned())]);
        let opened = open_with(fixture.database.url(), TestDatabase::settings(), &settings).await;
        let Err(OpenError::Objects(error @ OpenObjectsError::Client { .. })) = opened else {
            panic!("{url} with {name}: {opened:?}");
        };
        let text = chain(&error);
        assert!(
            text.starts_with(&format!("the object store {url} can't be used: ")) && text.contains(words),
            "{text}"
        );
    }
}

/// Returns an error with its causes.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
