//! A server behind TLS: it carries the whole board, and only the named authority is trusted.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use board::{Board, ControlMessage, LiveRun, RedisSettings};
use tasks::supervision::Supervisor;
use test_support::live_run::new_run;
use test_support::ports::free_port;
use test_support::redis_server::{PrivateServer, settings, skip};
use values::tenant::TenantId;

use crate::{append, close, listed, lookup, new_session_id, new_tenant, open, until, with_step};

/// Short, so that runs are refreshed often, and longer than a test machine stands still.
const EXPIRY: Duration = Duration::from_secs(12);

/// Shows that what one replica does reaches the other: runs, rivals, events, control messages.
async fn check_sharing(here: &Board, there: &Board) {
    let (tenant, base) = (new_tenant(), new_session_id());
    let run = new_run(Some(base));
    open(here, &tenant, &run, true).await.unwrap();
    until_seen(there, &tenant, &run).await;
    let rival = new_run(Some(base));
    assert_eq!(open(there, &tenant, &rival, true).await, Err(run.summary.run_id));
    let run = with_step(&run, "one");
    here.run_update(&tenant, Arc::clone(&run));
    append(here, &tenant, &run, 1..=3, "a");
    until_seen(there, &tenant, &run).await;
    until_read(there, &tenant, &run, "1a 2a 3a").await;
    until(true, async || {
        there
            .control_send(&tenant, run.summary.run_id, ControlMessage::Refresh)
            .await
    })
    .await;
    here.run_close(&tenant, run.summary.run_id);
    until(vec![], async || listed(there, &tenant).await).await;
    // Its events are left.
    assert_eq!(there.tenant_remove(&tenant).await.unwrap(), 1);
}

async fn until_seen(board: &Board, tenant: &TenantId, run: &Arc<LiveRun>) {
    until(Some(Arc::clone(run)), async || lookup(board, tenant, run).await).await;
}

async fn until_read(board: &Board, tenant: &TenantId, run: &LiveRun, wanted: &str) {
    until(wanted.to_owned(), async || {
        let events = board.event_read(tenant, run.summary.run_id, 0, 100).await;
        events.map(|events| crate::show(&events)).unwrap_or_default()
    })
    .await;
}

/// Makes an authority and a certificate of it for 127.0.0.1.
fn make_certificates(folder: &Path) -> Option<()> {
    std::fs::write(folder.join("san"), "subjectAltName=IP:127.0.0.1").unwrap();
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
    for arguments in [
        format!(
            "req -x509 {key} -keyout ca.key -out ca.pem -days 2 -subj /CN=authority -addext keyUsage=critical,keyCertSign"
        ),
        format!("req {key} -keyout server.key -out server.csr -subj /CN=server"),
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out server.pem -days 2 -extfile san".into(),
    ] {
        let mut command = Command::new("openssl");
        match command.current_dir(folder).args(arguments.split(' ')).output() {
            Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return skip("openssl is not on the PATH");
            }
            Err(error) => panic!("openssl does not start: {error}"),
        }
    }
    Some(())
}

/// Starts a server that speaks TLS on a further port, and returns that port.
fn start(folder: &Path) -> Option<(PrivateServer, u16)> {
    make_certificates(folder)?;
    let tls_port = free_port();
    let file = |name: &str| folder.join(name).display().to_string();
    let arguments = [
        ("--tls-port", tls_port.to_string()),
        ("--tls-cert-file", file("server.pem")),
        ("--tls-key-file", file("server.key")),
        ("--tls-ca-cert-file", file("ca.pem")),
        ("--tls-auth-clients", "no".to_owned()),
    ];
    let arguments = arguments.into_iter().flat_map(|(name, value)| [name.to_owned(), value]);
    let server = PrivateServer::start_with(arguments.collect())?;
    Some((server, tls_port))
}

fn trusting(folder: &Path) -> RedisSettings {
    RedisSettings {
        ca: Some(std::fs::read(folder.join("ca.pem")).unwrap()),
        ..settings(EXPIRY)
    }
}

#[tokio::test]
async fn a_private_authority_is_trusted_when_it_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let Some((_server, port)) = start(folder.path()) else {
        return;
    };
    let url = format!("rediss://127.0.0.1:{port}/");
    let here = Board::open(&url, trusting(folder.path()), &Supervisor::default())
        .await
        .unwrap();
    let there = Board::open(&url, trusting(folder.path()), &Supervisor::default())
        .await
        .unwrap();
    check_sharing(&here, &there).await;
    close([&here, &there]).await;
}

#[tokio::test]
async fn a_server_of_another_authority_is_not_used() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let Some((server, port)) = start(folder.path()) else {
        return;
    };
    make_certificates(other.path()).unwrap();
    let url = format!("rediss://127.0.0.1:{port}/");
    for settings in [trusting(other.path()), settings(EXPIRY)] {
        let here = Board::open(&url, settings, &Supervisor::default()).await.unwrap();
        let (tenant, run) = (new_tenant(), new_run(None));
        open(&here, &tenant, &run, true).await.unwrap();
        append(&here, &tenant, &run, 1..=1, "a");
        assert!(
            here.event_read(&tenant, new_run(None).summary.run_id, 0, 1)
                .await
                .is_err()
        );
        here.close().await;
    }
    assert_eq!(server.command(&["DBSIZE"]), ":0");
}

#[tokio::test]
async fn an_authority_without_tls_or_that_is_none_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    if make_certificates(folder.path()).is_none() {
        return;
    }
    let error = Board::open("redis://127.0.0.1:1/", trusting(folder.path()), &Supervisor::default())
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "the board is unavailable: prepare its connections");
    let nonsense = RedisSettings {
        ca: Some(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_vec()),
        ..settings(EXPIRY)
    };
    assert!(
        Board::open("rediss://127.0.0.1:1/", nonsense, &Supervisor::default())
            .await
            .is_err()
    );
}
