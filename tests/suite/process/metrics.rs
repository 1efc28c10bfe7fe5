//! Metrics as operators use them: Debian's Prometheus reads a running service, and `promtool`
//! checks what it shows, the alerts and their tests.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
use test_support::databases::TestDatabase;
use test_support::environment::{REQUIRE, variable};
use test_support::gate::Gate;
use test_support::ports::free_port;
use test_support::wait::{until, until_found};
use url::Url;

use super::binary::{Home, PATIENCE};
use super::clients::succeed;
use super::service::Service;
use crate::support::mock_model::{MockModel, Reply, last_user_text};
use crate::support::test_app::plain_client;

/// The variable with the folder of the programs of Prometheus.
const PROGRAMS: &str = "AGENT_RUNTIME_TEST_PROMETHEUS";
const DOCUMENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/metrics");

fn program(name: &str) -> Option<PathBuf> {
    let Some(folder) = variable(PROGRAMS) else {
        assert!(variable(REQUIRE).is_none(), "{REQUIRE} is set and {PROGRAMS} is not");
        eprintln!("SKIPPED: {PROGRAMS} names no folder with {name}");
        return None;
    };
    Some(Path::new(&folder).join(name))
}

/// A running Prometheus; dropping it kills it.
struct Prometheus {
    process: Child,
    address: String,
    client: Client,
    _folder: TempDir,
}

impl Prometheus {
    /// Starts Prometheus, which reads the metrics at an address each second.
    fn start(program: &Path, target: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let scrape = format!(
            "global: {{evaluation_interval: 1s}}\nscrape_configs: [{{job_name: agent-runtime, scrape_interval: 1s, static_configs: [{{targets: [\"{target}\"]}}]}}]"
        );
        let rules = format!("rule_files: [\"{DOCUMENTS}/rules.yml\"]");
        fs::write(folder.path().join("prometheus.yml"), format!("{scrape}\n{rules}\n")).unwrap();
        let address = format!("127.0.0.1:{}", free_port());
        let process = Command::new(program)
            .arg(format!(
                "--config.file={}",
                folder.path().join("prometheus.yml").display()
            ))
            .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            process,
            address,
            client: plain_client(),
            _folder: folder,
        }
    }

    /// Returns the value of an expression, once it has one.
    async fn value_of(&self, expression: &str) -> String {
        let mut url = Url::parse(&format!("http://{}/api/v1/query", self.address)).unwrap();
        url.query_pairs_mut().append_pair("query", expression);
        until_found(&format!("Prometheus has no {expression}"), async || {
            let answer = self.client.get(url.clone()).send().await.ok()?;
            let answer: Value = serde_json::from_slice(&answer.bytes().await.ok()?).ok()?;
            Some(answer["data"]["result"][0]["value"][1].as_str()?.to_owned())
        })
        .await
    }
}

impl Prometheus {
    /// Returns all rules, once each was evaluated without an error.
    async fn evaluated_rules(&self) -> Vec<Value> {
        let url = format!("http://{}/api/v1/rules", self.address);
        until_found("Prometheus evaluates no rules", async || {
            let answer = self.client.get(&url).send().await.ok()?;
            let answer: Value = serde_json::from_slice(&answer.bytes().await.ok()?).ok()?;
            let rules = answer["data"]["groups"][0]["rules"].as_array()?.clone();
            rules.iter().all(|rule| rule["health"] == "ok").then_some(rules)
        })
        .await
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Starts a service that shows metrics at an address of its own, and returns that, too.
async fn start(home: &Home, arguments: &[&str]) -> (Service, String) {
    let arguments = [&["--set", "metrics.listen=127.0.0.1:0"], arguments].concat();
    let service = Service::start_with(home, &arguments).await;
    let log = service.log();
    let (_, rest) = log.split_once("showing metrics address=").unwrap();
    let address = rest.split_whitespace().next().unwrap().to_owned();
    (service, address)
}

async fn metrics(address: &str) -> String {
    let answer = plain_client().get(format!("http://{address}/metrics")).send();
    answer.await.unwrap().text().await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prometheus_reads_a_running_service_and_promtool_finds_nothing_wrong() {
    let (Some(prometheus), Some(promtool)) = (program("prometheus"), program("promtool")) else {
        return;
    };
    let mock = MockModel::start(|request| Reply::text(&last_user_text(request))).await;
    let home = Home::with_file().with_mock(&mock);
    let (service, address) = start(&home, &[]).await;
    service.put_agent("echo", json!({"model": "mock/m"})).await;
    service.run("echo", None, "hello").await;

    let shown = metrics(&address).await;
    let mut checking = Command::new(&promtool)
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    checking.stdin.take().unwrap().write_all(shown.as_bytes()).unwrap();
    let checked = checking.wait_with_output().unwrap();
    let words = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert!(checked.status.success() && words.is_empty(), "{words}\n{shown}");

    let prometheus = Prometheus::start(&prometheus, &address);
    assert_eq!(prometheus.value_of("up == 1").await, "1");
    let ended = "sum(agent_runtime_runs_total{agent=\"echo\", status=\"completed\"})";
    assert_eq!(prometheus.value_of(ended).await, "1");
    assert_eq!(
        prometheus.value_of("agent_runtime_queue_oldest_waiting_seconds").await,
        "0"
    );
    // All rules are evaluated, and find nothing wrong with an idle service.
    let rules = prometheus.evaluated_rules().await;
    assert!(rules.len() > 5, "{rules:?}");
    assert!(rules.iter().all(|rule| rule["state"] == "inactive"), "{rules:?}");
    drop(prometheus);
    service.stop().await;
}

#[test]
fn the_alerts_pass_their_own_tests() {
    let Some(promtool) = program("promtool") else { return };
    for arguments in [["check", "rules", "rules.yml"], ["test", "rules", "rules_test.yml"]] {
        let words = succeed(Command::new(&promtool).args(arguments).current_dir(DOCUMENTS));
        assert!(words.contains("SUCCESS"), "{words}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_shows_its_metrics_until_its_last_run_has_ended() {
    let Some(database) = TestDatabase::postgres().await else {
        return;
    };
    let gate = Gate::new();
    let behind = Arc::clone(&gate);
    let mock = MockModel::start(move |_| Reply::Held(Arc::clone(&behind), "done".to_owned())).await;
    let home = Home::new(database.url()).with_mock(&mock);
    let home = home.variable("AGENT_RUNTIME__RUNS__SHUTDOWN_GRACE", "60s");
    let api = Service::start_with(&home, &["--role", "api"]).await;
    let (worker, address) = start(&home, &["--role", "worker"]).await;
    api.put_agent("echo", json!({"model": "mock/m"})).await;
    let body = json!({"agent": "echo", "input": "hello", "mode": "async"});
    let run = api.post("/v1/runs", body).await;
    gate.until_waiting(1).await;
    let shown = metrics(&address).await;
    let at_work = "agent_runtime_runs_in_progress{kind=\"queued\"} 1\n";
    let version = env!("CARGO_PKG_VERSION");
    let build = format!("agent_runtime_build_info{{version=\"{version}\",role=\"worker\",store=\"postgres\"}} 1\n");
    assert!(shown.contains(at_work) && shown.contains(&build), "{shown}");

    worker.signal("TERM");
    worker.until_closed().await;
    assert!(
        metrics(&address).await.contains(at_work),
        "the metrics end before the last run"
    );
    gate.open(1);
    assert_eq!(api.ended(&run).await["status"], "completed");
    assert_eq!(worker.end_within(PATIENCE).await.code, Some(0));
    api.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_drains_says_so_and_still_serves() {
    let mock = MockModel::start(|request| Reply::text(&last_user_text(request))).await;
    let home = Home::with_file().with_mock(&mock);
    let service = Service::start_with(&home, &["--set", "shutdown.drain_delay=60s"]).await;
    service.put_agent("echo", json!({"model": "mock/m"})).await;
    service.signal("TERM");
    until("the service is still ready", async || {
        let (status, problem) = service.call(Method::GET, "/readyz", None).await;
        status == StatusCode::SERVICE_UNAVAILABLE && problem["code"] == "not_ready"
    })
    .await;
    let (alive, _) = service.call(Method::GET, "/healthz", None).await;
    assert_eq!(alive, StatusCode::OK);
    service.run("echo", None, "served on a new connection").await;
    // Another signal ends the delay, after which the grace begins.
    service.signal("TERM");
    let ended = service.end_within(PATIENCE).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}
