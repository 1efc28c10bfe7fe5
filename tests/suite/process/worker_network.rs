//! Commands with a network at workers: the proxy is that of the worker, and only the worker knows
//! its secrets.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use test_support::databases::TestDatabase;
use test_support::raw_server::{RawReply, RawRequest, RawServer};

use super::certificates::{TlsFront, certificate};
use super::command_workers::{Worker, home, no_command_is_left, run_all};
use super::service::Service;
use crate::end_to_end::on_every_store;
use crate::sandbox_network::has_namespaces;
use crate::support::test_app::session_path;

on_every_store!(a_command_at_a_worker_reaches_what_the_worker_allows_and_never_sees_its_secret);

const SECRET: &str = "hunter2-hunter2";

async fn a_command_at_a_worker_reaches_what_the_worker_allows_and_never_sees_its_secret(database: TestDatabase) {
    if !has_namespaces() {
        eprintln!("LEFT OUT: commands have no network without namespaces");
        return;
    }
    let server = RawServer::start(|request| {
        let sent = request.header("authorization").unwrap_or("none").to_owned();
        RawReply::new(200, &[], format!("{} {sent}\n", request.line()))
    })
    .await;
    let front = TlsFront::start(format!("127.0.0.1:{}", server.port())).await;
    let trusted = certificate("authority.pem");
    let home = home(&database).variable("SSL_CERT_FILE", trusted.to_str().unwrap());
    home.write("secret", &format!("{SECRET}\n"));
    let file = format!("tools.secrets.shop.file={}", home.path().join("secret").display());
    let host = format!("sandbox.network.secrets.TOKEN.host={}", front.address);
    let network = [
        "sandbox.network.allow_hosts=[\"127.0.0.1\"]",
        "sandbox.network.allow_networks=[\"127.0.0.1\"]",
        "sandbox.network.ports=[]",
    ];
    let secret = [
        host.as_str(),
        "sandbox.network.secrets.TOKEN.header=authorization",
        "sandbox.network.secrets.TOKEN.secret=shop",
        file.as_str(),
    ];
    // The service knows of the network, for the models, but of no secret.
    let settings: Vec<_> = network.iter().flat_map(|setting| ["--set", *setting]).collect();
    let service = Service::start_with(&home, &settings).await;
    let worker = Worker::start(&home, "worker", &[&network[..], &secret[..]].concat()).await;
    let (plain, port) = (server.url("/plain"), server.port());
    let tls = format!("https://{}", front.address);
    let commands = [
        format!("curl -sS {plain}; curl -sS -o /dev/null -w '%{{http_code}}\\n' http://127.0.0.2:{port}/"),
        format!("curl -sS {tls}/own; curl -sS -H \"authorization: token $TOKEN\" {tls}/placed; echo $TOKEN"),
        format!("curl -sS -H \"authorization: $TOKEN\" {plain}"),
        format!("curl -sS --noproxy '*' {plain} 2> /dev/null; echo $?; export MORE=1"),
        "env; cat /proc/*/environ /proc/*/cmdline 2> /dev/null | tr '\\0' '\\n'; echo searched".to_owned(),
    ];
    let commands: Vec<_> = commands.iter().map(String::as_str).collect();
    let (found, run) = run_all(&service, "sh", &commands).await;
    let masked = "*".repeat(SECRET.len());
    assert_eq!(found[0], "GET /plain none\n403\n");
    assert_eq!(
        found[1],
        format!("GET /own {masked}\nGET /placed token {masked}\nplaceholder-of-TOKEN\n")
    );
    assert_eq!(found[2], "GET /plain placeholder-of-TOKEN\n");
    // Past the proxy there is nothing.
    assert_eq!(found[3], "7\n");
    assert!(
        found[4].ends_with("searched\n") && !found[4].contains(SECRET),
        "{}",
        found[4]
    );
    let header = |request: &RawRequest| request.header("authorization").unwrap_or("none").to_owned();
    let received: Vec<_> = server.requests().iter().map(header).collect();
    let token = format!("token {SECRET}");
    assert_eq!(received, ["none", SECRET, &token, "placeholder-of-TOKEN"]);

    // The session has the variable of the command, and none of the worker's network.
    let session = service.get(&session_path(&run, "")).await;
    let variables = &session["environment_state"]["shell"]["variables"];
    assert_eq!(variables, &json!({"MORE": "1"}), "{session:#}");
    assert!(!session.to_string().contains(SECRET));
    no_command_is_left(&database).await;
    let ended = worker.stop().await;
    assert!(!ended.stderr.contains(SECRET), "{}", ended.stderr);
    service.stop().await;
    // Nothing has written it anywhere but where it was.
    let copies = find_text(home.path(), SECRET);
    assert_eq!(copies, [home.path().join("secret")]);
}

/// Returns the files below a folder that contain a text.
fn find_text(folder: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            found.extend(find_text(&path, text));
        } else if kind.is_file() {
            let bytes = fs::read(&path).unwrap();
            if memchr::memmem::find(&bytes, text.as_bytes()).is_some() {
                found.push(path);
            }
        }
    }
    found
}
