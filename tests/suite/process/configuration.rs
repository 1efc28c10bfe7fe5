//! Configuration as an operator meets it: `check-config` explains what is in force, and a mistake
//! is reported with its origin and a suggestion.

use std::fs;
use std::net::TcpListener;

use serde_json::{Value, json};
use test_support::databases::{Engine, TestDatabase};
use test_support::redis_server::PrivateServer;
use test_support::wait::until;

use super::binary::Home;
use super::service::Service;
use crate::support::hostile::endless_agents;
use crate::support::members::column;
use crate::support::text::{assert_contains, assert_lacks};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_configuration_in_force_is_explained() {
    let home = Home::new("postgres://app:hunter2@db/agents?sslmode=require")
        .variable("OPENAI_API_KEY", "sk-very-secret")
        .variable("AGENT_RUNTIME__BOARD__URL", "redis://:hunter3@cache:6379/0");
    home.write(
        "agent-runtime.toml",
        "[runs]\n# more\nmax_concurrent = 7\n\n[providers.own]\nkind = 'openai_chat'\nbase_url = 'http://own/v1'\n\
         headers = { x-note = 'hunter4' }\n",
    );
    let checked = home.run(&["check-config", "--set", "log.filter=warn"]).await;
    let (shown, complaint) = (checked.stdout, checked.stderr);
    assert_eq!(checked.code, Some(1), "there is no such store");
    assert_contains!(complaint, "the store postgres://app:[redacted]@db/agents");
    for (line, origin) in [
        ("runs.max_concurrent = 7", "agent-runtime.toml:3"),
        ("log.filter = \"warn\"", "command line"),
        ("http.max_json_depth = 64", "default"),
        (
            "http.listen = \"127.0.0.1:0\"",
            "environment AGENT_RUNTIME__HTTP__LISTEN",
        ),
        ("providers.openai.api_key_env = \"OPENAI_API_KEY\"", "default (set)"),
    ] {
        let found = shown.lines().find(|shown| shown.starts_with(line));
        let found = found.unwrap_or_else(|| panic!("no {line:?} in {shown}"));
        assert!(found.ends_with(&format!("# {origin}")), "{found}");
    }
    for secret in ["hunter", "sk-very-secret"] {
        assert_lacks!(shown, secret);
        assert_lacks!(complaint, secret);
    }
    assert!(shown.contains("postgres://app:[redacted]@db/agents"), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_typo_ends_every_command_with_a_suggestion() {
    let in_environment = Home::with_file().variable("AGENT_RUNTIME__HTTP__LISTN", "127.0.0.1:1");
    let in_file = Home::with_file();
    in_file.write("agent-runtime.toml", "[runs]\nmax_concurent = 5\n");
    let in_named_file = Home::with_file();
    in_named_file.write("my.toml", "[stor]\nurl = 'sqlite://x'\n");
    for (home, arguments, expected) in [
        (
            &in_environment,
            &[][..],
            &["AGENT_RUNTIME__HTTP__LISTN", "did you mean `http.listen`?"][..],
        ),
        (
            &in_file,
            &[],
            &["agent-runtime.toml:2", "did you mean `runs.max_concurrent`?"],
        ),
        (
            &in_named_file,
            &["--config", "my.toml"],
            &["my.toml:", "did you mean `store`?"],
        ),
        (
            &Home::with_file(),
            &["--set", "http.lissten=1"],
            &["command line", "did you mean `http.listen`?"],
        ),
        (
            &Home::with_file(),
            &["--stor-url", "sqlite://x.db"],
            &["unexpected argument '--stor-url'", "--store-url"],
        ),
        (&Home::with_file(), &["--config", "nowhere.toml"], &["nowhere.toml"]),
        (
            &Home::with_file().variable("OTEL_EXPORTER_OTLP_ENDPOINT", "not an address"),
            &[],
            &["OTEL_EXPORTER_OTLP_ENDPOINT"],
        ),
    ] {
        for command in ["serve", "check-config"] {
            let complaint = home.fail(&[&[command], arguments].concat()).await;
            for part in expected {
                assert!(complaint.contains(part), "no {part:?} in {complaint}");
            }
            assert!(!complaint.contains("panicked"), "{complaint}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_value_is_reported_with_its_key() {
    for (setting, expected) in [
        (
            "providers.mine.kind=openai_chats",
            &["providers.mine.kind", "openai_chats", "openai_chat"][..],
        ),
        ("http.listen=8080", &["http.listen"]),
        ("store.url=mysql://db/x", &["store.url", "postgres://"]),
        ("runs.shutdown_grace=soon", &["runs.shutdown_grace"]),
        ("runs.max_concurrent=0", &["runs.max_concurrent"]),
        ("log.filter=loud=very", &["log.filter", "log levels"]),
    ] {
        let complaint = Home::with_file().fail(&["serve", "--set", setting]).await;
        for part in expected {
            assert!(complaint.contains(part), "{setting}: no {part:?} in {complaint}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_agent_file_is_reported_with_its_key() {
    let endless = endless_agents("demo/demo");
    let endless = endless.each_ref().map(|(text, expected)| (text.as_str(), *expected));
    let wrong = [
        ("name = 'x'\nmodel = 'demo/demo'\ntols = ['calculator']", "tols"),
        (
            "name = 'x'\nmodel = 'demo/demo'\n[budget]\nmax_steps = 'many'",
            "`budget.max_steps`",
        ),
        ("name = 'x'\nmodel = 'demo/demo", "line 2"),
        ("name = 'x'\nmodel = 'nobody/m'", "nobody"),
        ("name = 'x'\nmodel = 'demo/demo'\ntools = ['calculater']", "calculater"),
        ("name = 'a b'\nmodel = 'demo/demo'", "letters"),
        (
            "name = 'x'\nmodel = 'ollama/m'\n[budget]\nmax_cost = 1.0",
            "no price is known for ollama/m",
        ),
        (
            "name = 'x'\nmodel = 'demo/demo'\n[[hooks]]\nname = 'limit'",
            "; did you mean \"limits\"?",
        ),
        (
            "name = 'x'\nmodel = 'demo/demo'\nsystem_prompt = '{{ open'",
            "x.toml: the agent \"x\" can't work",
        ),
    ];
    for (text, expected) in wrong.into_iter().chain(endless) {
        let home = Home::with_file();
        home.write("config/agents/x.toml", text);
        let complaint = home.fail(&["serve"]).await;
        assert_contains!(complaint, "config/agents/x.toml: ", expected);
        assert_eq!(complaint.lines().count(), 1, "{complaint}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_check_reports_everything_that_would_fail_later() {
    let home = Home::with_file()
        .variable("AGENT_RUNTIME_HTTP_LISTEN", "127.0.0.1:9")
        .variable("AGENT_RUNTIME_PROVIDERS__OPENAI_BASE_URL", "http://x/v1")
        .variable("AGENT_RUNTIME_SERVICE_HOST", "10.0.0.1")
        .variable("AGENT_RUNTIME_URL", "http://127.0.0.1:9")
        .variable("AGENT_RUNTIME_KEY", "ark_1")
        .variable("AGENT_RUNTIME_TEST_REDIS_URL", "redis://127.0.0.1:9")
        .variable("OPENAI_BASE_URL", "http://x/v1");
    home.write("config/agents/x.toml", "model = 7");
    home.write("config/agents/y.toml", "model = 'nobody/m'");
    home.write("config/agents/keyless.toml", "model = 'openai/gpt-4.1'");
    home.write("config/agents/good.toml", "model = 'ollama/llama3'");
    home.write("config/agents/more/z.toml", "model = 'demo/demo'");
    home.write("config/agents/notes.md", "");
    home.write("config/mcp/files.toml", "command = 'no-such-program'");
    home.write("config/agent-runtime.toml", "");
    home.write(
        "agent-runtime.toml",
        "[log]\nfilter = 'info'\n[providers.openai]\nbase_url = 'http://y/v1'\n",
    );
    let checked = home.run(&["check-config"]).await;
    assert_eq!(checked.code, Some(1));
    assert!(checked.stdout.contains("log.filter = \"info\""), "{}", checked.stdout);
    let expected = [
        "error: environment AGENT_RUNTIME_HTTP_LISTEN: no setting has this name, did you mean `AGENT_RUNTIME__HTTP__LISTEN`?",
        "error: environment AGENT_RUNTIME_PROVIDERS__OPENAI_BASE_URL: no setting has this name, did you mean \
         `AGENT_RUNTIME__PROVIDERS__OPENAI__BASE_URL`?",
        "warning: environment AGENT_RUNTIME_SERVICE_HOST: no setting has this name",
        "warning: environment OPENAI_BASE_URL: no effect, since agent-runtime.toml:4 sets `providers.openai.base_url`",
        "warning: ./config/agent-runtime.toml is not read: ./agent-runtime.toml comes first",
        "warning: config/agents/more is not read: it is a directory",
        "warning: config/agents/notes.md is not read: its name does not end in .toml",
        "error: the MCP server \"files\": `command`: no directory of its `PATH` has the program no-such-program: /",
        "error: config/agents/x.toml: line 1: `model`: invalid type",
        "error: config/agents/y.toml: the agent \"y\" can't work: no provider is named \"nobody\"",
        "error: config/agents/keyless.toml: the agent \"keyless\" can't work: the provider \"openai\" has no API key: set OPENAI_API_KEY",
        "error: the configuration has 6 errors and 5 warnings",
    ];
    let found: Vec<&str> = checked.stderr.lines().collect();
    assert_eq!(found.len(), expected.len(), "{}", checked.stderr);
    for (found, expected) in found.into_iter().zip(expected) {
        assert!(found.starts_with(expected), "{found}\n{expected}");
    }
    // Without the variables, which only that home has, and with all files mended nothing is left.
    let mended = Home::with_file();
    mended.write("config/agents/good.toml", "model = 'ollama/llama3'");
    let checked = mended.run(&["check-config"]).await;
    assert_eq!(
        (checked.code, checked.stderr.as_str()),
        (
            Some(0),
            "the configuration can be used: it has no errors and no warnings\n"
        )
    );
    assert!(
        !fs::exists(mended.path().join("store.db")).unwrap(),
        "a check makes no store"
    );
    let missing = mended.fail(&["check-config", "--set", "agents.directory=agnets"]).await;
    assert_contains!(
        missing,
        "error: command line: `agents.directory`: there is no directory agnets"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_check_reads_the_store() {
    let home = Home::with_file();
    home.write("config/agents/helper.toml", "model = 'demo/demo'");
    let check = async |setting: &str| home.run(&["check-config", "--set", setting]).await;
    let fails = async |setting: &str, expected: &str| {
        let checked = check(setting).await;
        assert_eq!(checked.code, Some(1), "{setting}: {}", checked.stderr);
        assert!(
            checked.stderr.contains(expected),
            "no {expected:?} in {}",
            checked.stderr
        );
        assert!(
            checked
                .stderr
                .ends_with("error: the configuration has 1 error and no warnings\n"),
            "{}",
            checked.stderr
        );
    };
    let passes = async |setting: &str| {
        let checked = check(setting).await;
        assert_eq!(checked.code, Some(0), "{setting}: {}", checked.stderr);
    };
    let unknown = "command line: `runs.default_agent`: there is no agent named \"helpr\", did you mean \"helper\"?";
    fails("runs.default_agent=helpr", unknown).await;
    passes("runs.default_agent=helper").await;
    fails("http.listen=0.0.0.0:8080", "there is no API key").await;
    passes("http.insecure_no_auth=true").await;
    fails("store.migrate=false", "there is no file").await;
    assert!(
        !fs::exists(home.path().join("store.db")).unwrap(),
        "a check makes no store"
    );

    // Agents of the store count, and its keys.
    let service = Service::start(&home).await;
    let body = json!({"model": "demo/demo"});
    service.put_agent("helpr", body).await;
    service.stop().await;
    passes("runs.default_agent=helpr").await;
    home.succeed(&["keys", "create", "--tenant", "acme"]).await;
    passes("http.listen=0.0.0.0:8080").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_check_neither_waits_for_a_store_nor_changes_it() {
    // It accepts connections and sends nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://someone@{}/agents", silent.local_addr().unwrap());
    let complaint = Home::new(&url).fail(&["check-config"]).await;
    assert_contains!(
        complaint,
        "error: can't open the store postgres://",
        "deadline has elapsed"
    );

    let Some(database) = TestDatabase::empty(Engine::Postgres).await else {
        return;
    };
    // Each cause is printed once, although the driver's errors print their own.
    let missing = format!("{}_nosuch", database.url().split('?').next().unwrap());
    let complaint = Home::new(&missing).fail(&["check-config"]).await;
    assert_eq!(complaint.matches("does not exist").count(), 1, "{complaint}");
    let home = Home::new(database.url());
    for _ in 0..2 {
        let checked = home.run(&["check-config"]).await;
        assert_eq!(checked.code, Some(0), "{}", checked.stderr);
        assert!(
            checked
                .stderr
                .starts_with("warning: the service brings the tables of the store postgres://")
                && checked
                    .stderr
                    .ends_with("the configuration can be used: it has no errors and 1 warning\n"),
            "{}",
            checked.stderr
        );
    }
    let complaint = home.fail(&["check-config", "--set", "store.migrate=false"]).await;
    assert_contains!(complaint, "the schema of the store has version 0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_board_that_can_t_be_used_fails_the_check() {
    let home = Home::with_file();
    let check = async |url: &str| home.run(&["check-config", "--set", &format!("board.url={url}")]).await;
    let fails = async |url: &str, expected: &str| {
        let checked = check(url).await;
        let (found, verdict) = checked.stderr.trim_end().split_once('\n').unwrap();
        assert_eq!(
            (checked.code, verdict),
            (Some(1), "error: the configuration has 1 error and no warnings")
        );
        assert!(
            found.starts_with("error: can't use the board redis://") && found.contains(expected),
            "no {expected:?} in {found}"
        );
        assert!(!found.contains("hunter"), "{found}");
    };
    // It accepts connections and sends nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("redis://:hunter2@{}", silent.local_addr().unwrap());
    fails(&silent, "the server did not answer in time").await;
    let Some(server) = PrivateServer::start() else { return };
    assert_eq!(check(&server.url()).await.code, Some(0));
    server.command(&["CONFIG", "SET", "requirepass", "hunter2"]);
    fails(&server.url(), "NOAUTH").await;
    let address = server.url().replace("://", "://:hunter3@");
    fails(&address, "Password authentication failed").await;
    let mut server = server;
    server.stop();
    fails(&server.url(), "Connection refused").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_warns_of_agents_that_lack_a_key() {
    let home = Home::with_file();
    home.write("config/agents/keyless.toml", "model = 'openai/gpt-4.1'");
    let log = Service::start(&home).await.stop().await.stderr;
    let line = log.lines().find(|line| line.contains("an agent can't work"));
    let line = line.unwrap_or_else(|| panic!("{log}"));
    assert_contains!(line, "WARN", "keyless", "OPENAI_API_KEY");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_variable_without_effect_is_a_warning_of_the_service() {
    let home = Home::with_file()
        .variable("AGENT_RUNTIME_HTTP_LISTEN", "127.0.0.1:9")
        .variable("OPENAI_BASE_URL", "http://x/v1");
    home.write("agent-runtime.toml", "[providers.openai]\nbase_url = 'http://y/v1'\n");
    let log = Service::start(&home).await.stop().await.stderr;
    let lines: Vec<_> = log
        .lines()
        .filter(|line| line.contains("a variable has no effect"))
        .collect();
    let parts = [
        ["AGENT_RUNTIME_HTTP_LISTEN", "AGENT_RUNTIME__HTTP__LISTEN"],
        ["OPENAI_BASE_URL", "agent-runtime.toml:2"],
    ];
    assert_eq!(lines.len(), parts.len(), "{log}");
    for (line, parts) in lines.into_iter().zip(parts) {
        assert!(parts.iter().all(|part| line.contains(part)), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_reloads_the_agents() {
    let home = Home::with_file();
    let service = Service::start(&home).await;
    let names = async || -> Vec<Value> {
        let agents = service.get("/v1/agents").await;
        column(&agents["data"], "name").into_iter().cloned().collect()
    };
    let logged = async |line: &str| until(line, async || service.log().contains(line)).await;
    assert_eq!(names().await, [json!("demo")]);
    home.write("config/agents/bad.toml", "model = 7");
    home.write("config/agents/good.toml", "model = 'demo/demo'");
    service.signal("HUP");
    logged("the files of agents can't be used, so the agents stay as they were").await;
    for part in ["config/agents/bad.toml", "`model`: "] {
        assert!(service.log().contains(part), "{part} is not in {}", service.log());
    }
    assert_eq!(names().await, [json!("demo")]);
    fs::remove_file(home.path().join("config/agents/bad.toml")).unwrap();
    service.signal("HUP");
    logged("the files of agents were read again").await;
    assert_eq!(names().await, [json!("demo"), json!("good")]);
    service.run("good", None, "What is 1 + 1?").await;
    let agents = home.path().join("config/agents");
    fs::rename(&agents, home.path().join("away")).unwrap();
    service.signal("HUP");
    logged("can't read the directory of agents config/agents").await;
    fs::create_dir(&agents).unwrap();
    service.signal("HUP");
    logged("the directory of agents config/agents had agents and is empty now").await;
    assert_eq!(names().await, [json!("demo"), json!("good")]);
    service.stop().await;
}
