//! Tests which layer wins, and the defaults.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use secrecy::ExposeSecret as _;

use super::{environment, file};
use crate::config::schema::DEFAULTS;
use crate::config::{Config, HttpFetchConfig, LogFormat, Origin, Sources, load};
use crate::run::settings::ProcessRole;
use agent::state::ExecutionBudget;
use models::ProviderKind;
use net::outgoing::{HttpMethod, PrivateAddresses};
use values::limits::TenantLimits;
use values::tenant::TenantId;
use values::usage::Price;
use workspace::WorkspaceLimits;

#[test]
fn the_defaults_are_the_documented_ones() {
    let config = load(&Sources::default()).unwrap().config;
    let http = config.http;
    assert_eq!(http.listen.to_string(), "127.0.0.1:8080");
    assert!(!http.is_exposed && http.allowed_hosts.is_empty());
    assert_eq!((http.max_body_bytes, http.max_json_depth), (10_485_760, 64));
    assert_eq!((http.max_json_values, http.max_input_messages), (100_000, 1000));
    assert_eq!((http.max_header_bytes, http.max_connections), (16_384, 10_000));
    assert_eq!(http.header_timeout, Duration::from_secs(10));
    assert_eq!(http.request_timeout, Duration::from_secs(30));
    assert_eq!(http.keep_alive_interval, Duration::from_secs(15));
    assert_eq!(http.min_transfer_rate, 1_024);
    let console = config.console;
    assert!(console.enabled.is_none() && console.directory.is_none());
    for (listen, is_served) in [("127.0.0.1:1", true), ("[::1]:1", true), ("0.0.0.0:1", false)] {
        assert_eq!(console.is_served(listen.parse().unwrap()), is_served, "{listen}");
    }
    assert_eq!(config.store.url.expose(), "sqlite://data/agent-runtime.db");
    assert_eq!(config.store.cache_bytes, 67_108_864);
    let connections = config.connections;
    assert!(connections.migrate && connections.listen_url.is_none());
    assert_eq!(
        (connections.max_connections, connections.acquire_timeout),
        (16, Duration::from_secs(5))
    );
    assert!(config.board.url.is_none() && config.objects.is_none());
    let runs = config.runs;
    assert_eq!((runs.default_agent.as_str(), runs.max_concurrent), ("demo", 1024));
    assert_eq!(runs.shutdown_grace, Duration::from_secs(20));
    let calls = config.call_limits;
    assert_eq!((calls.concurrency, calls.timeout), (8, Duration::from_mins(1)));
    let queue = config.queue;
    assert_eq!((queue.role, queue.concurrency), (ProcessRole::All, 64));
    assert_eq!((queue.max_waiting, queue.max_attempts), (100_000, 5));
    assert_eq!(
        (queue.lease, queue.poll_interval),
        (Duration::from_secs(15), Duration::from_secs(1))
    );
    assert_eq!(config.idempotency.retention, Duration::from_hours(24));
    assert_eq!(config.agents.directory, PathBuf::from("config/agents"));
    assert_eq!(config.mcp.directory, PathBuf::from("config/mcp"));
    assert_eq!(
        (config.log.format, config.log.filter.as_str()),
        (LogFormat::Text, "info")
    );
}

#[test]
fn tools_are_limited_by_default() {
    let config = load(&Sources::default()).unwrap().config;
    assert_eq!(config.workspace, WorkspaceLimits::default());
    let HttpFetchConfig { settings, rules, .. } = config.http_fetch;
    assert!(rules.private == PrivateAddresses::In(Vec::new()) && !rules.allow_http);
    assert_eq!(rules.ports, BTreeSet::from([80, 443]));
    assert_eq!(settings.methods, BTreeSet::from([HttpMethod::Get, HttpMethod::Head]));
    assert_eq!((settings.max_redirects, settings.timeout), (5, Duration::from_secs(20)));
    assert_eq!(
        (settings.max_response_bytes, settings.default_text_bytes),
        (2_097_152, 32_768)
    );
}

#[test]
fn runs_have_a_budget_and_no_ceiling_by_default() {
    let Config { runs, limits, .. } = load(&Sources::default()).unwrap().config;
    let budget = ExecutionBudget {
        max_steps: Some(50),
        max_seconds: Some(600.0),
        ..ExecutionBudget::default()
    };
    assert_eq!(runs.budget, budget);
    assert_eq!(**limits.of(&TenantId::anonymous()), TenantLimits::default());
}

#[test]
fn each_protocol_has_a_provider_by_default() {
    let providers = load(&Sources::default()).unwrap().config.providers;
    let names: Vec<&str> = providers.keys().map(String::as_str).collect();
    let wanted = [
        "anthropic",
        "bedrock",
        "deepseek",
        "demo",
        "gemini",
        "groq",
        "mistral",
        "ollama",
        "openai",
        "openai_responses",
        "openrouter",
        "together",
        "vllm",
    ];
    assert_eq!(names, wanted);
    for kind in ProviderKind::OVER_HTTP {
        assert!(providers.values().any(|provider| provider.kind == kind), "{kind:?}");
    }
    assert_eq!(providers["demo"].kind, ProviderKind::Scripted);
    let mut all = providers.values();
    assert!(all.all(|provider| provider.stream && provider.api_key.is_none() && provider.capabilities.is_empty()));
    assert_eq!(providers["bedrock"].aws.region, "us-east-1");
}

#[test]
fn each_layer_wins_over_the_one_before() {
    let (_directory, path) = file("[http]\nmax_connections = 2\n");
    let mut sources = Sources::default();
    let check = |sources: &Sources, connections: usize, origin: Origin| {
        let loaded = load(sources).unwrap();
        assert_eq!(loaded.config.http.max_connections, connections);
        assert_eq!(loaded.origin(&["http", "max_connections"]), origin);
        // The other keys of the section have not changed.
        assert_eq!(loaded.config.http.max_json_depth, 64);
        assert_eq!(loaded.origin(&["http", "max_json_depth"]), Origin::Default);
    };
    check(&sources, 10_000, Origin::Default);
    sources.file = Some(path.clone());
    check(&sources, 2, Origin::File { path, line: 2 });
    let variable = "AGENT_RUNTIME__HTTP__MAX_CONNECTIONS";
    sources.environment = environment(&[(variable, "3")]);
    let variable = variable.to_owned();
    check(&sources, 3, Origin::Environment { variable });
    let flag = |value: &str| ("http.max_connections".to_owned(), value.to_owned());
    sources.overrides = vec![flag("4"), flag("5")];
    check(&sources, 5, Origin::CommandLine);
}

#[test]
fn a_file_is_found_in_the_working_directory() {
    let directory = tempfile::tempdir().unwrap();
    let sources = Sources {
        directory: Some(directory.path().to_owned()),
        ..Sources::default()
    };
    assert_eq!(load(&sources).unwrap().file, None);
    fs::create_dir(directory.path().join("config")).unwrap();
    for (name, agent) in [("config/agent-runtime.toml", "a"), ("agent-runtime.toml", "b")] {
        let path = directory.path().join(name);
        fs::write(&path, format!("runs.default_agent = \"{agent}\"")).unwrap();
        let loaded = load(&sources).unwrap();
        assert_eq!(loaded.file, Some(path));
        assert_eq!(loaded.config.runs.default_agent, agent);
    }
}

#[test]
fn variables_reach_existing_names_in_any_case() {
    let (_directory, path) = file(
        "[providers.My-Lab]\nkind = 'openai_chat'\nbase_url = 'http://h/v1'\n\
         [prices.'openai/gpt-4.1']\ninput = 2\noutput = 8\n\
         [context_windows]\n'openai/gpt-4.1' = 9\n",
    );
    let loaded = load(&Sources {
        file: Some(path),
        environment: environment(&[
            ("AGENT_RUNTIME__PROVIDERS__OPENAI__API_KEY_ENV", "OTHER_KEY"),
            ("AGENT_RUNTIME__providers__Groq__stream", "false"),
            ("AGENT_RUNTIME__PROVIDERS__MY_LAB__MODELS", "['a', \"b\"]"),
            ("AGENT_RUNTIME__PRICES__OPENAI_GPT_4_1__CACHE_READ", "0.5"),
            ("AGENT_RUNTIME__CONTEXT_WINDOWS__OPENAI_GPT_4_1", "1047576"),
            ("AGENT_RUNTIME__RUNS__BUDGET__MAX_TOKENS", "9"),
            ("AGENT_RUNTIME__HTTP__MAX-CONNECTIONS", "5"),
            ("AGENT_RUNTIME__RUNS__DEFAULT_AGENT", "true"),
            ("AGENT_RUNTIME__PROVIDERS__VLLM__HEADERS", "{ X-Title = 'lab' }"),
            ("AGENT_RUNTIME__PROVIDERS__NEW", "{ kind = 'scripted' }"),
            ("OTHER_KEY", "sk-1"),
            ("AGENT_RUNTIME_PORT", "tcp://10.0.0.1:80"),
        ]),
        ..Sources::default()
    })
    .unwrap();
    let Config {
        providers,
        prices,
        context_windows,
        runs,
        http,
        ..
    } = loaded.config;
    assert_eq!(providers.len(), 15, "{:?}", providers.keys());
    let key = providers["openai"].api_key.as_ref().unwrap();
    assert_eq!(key.expose_secret(), "sk-1");
    assert!(!providers["groq"].stream);
    assert_eq!(providers["My-Lab"].models, ["a", "b"]);
    assert_eq!(providers["vllm"].headers["X-Title"].expose_secret(), "lab");
    assert_eq!(providers["new"].kind, ProviderKind::Scripted);
    let model = "openai/gpt-4.1".parse().unwrap();
    assert_eq!(prices.price(&model), Price::per_million(2.0, 8.0, Some(0.5), None));
    assert_eq!(context_windows.window(&model), Some(1_047_576));
    assert_eq!(runs.budget.max_tokens, Some(9));
    assert_eq!(http.max_connections, 5);
    assert_eq!(runs.default_agent, "true", "a string is taken as it stands");
}

#[test]
fn openai_base_url_replaces_only_the_default_address() {
    let url = |file: Option<&str>, variables: &[(&str, &str)]| {
        let held = file.map(self::file);
        let loaded = load(&Sources {
            file: held.as_ref().map(|(_, path)| path.clone()),
            environment: environment(variables),
            ..Sources::default()
        });
        loaded.unwrap().config.providers["openai"].base_url.clone().unwrap()
    };
    let variable = ("OPENAI_BASE_URL", "http://127.0.0.1:11434/v1/");
    let own = ("AGENT_RUNTIME__PROVIDERS__OPENAI__BASE_URL", "http://c/v1");
    let file = "[providers.openai]\nbase_url = 'http://b/v1'";
    assert_eq!(url(None, &[("OPENAI_BASE_URL", " ")]), "https://api.openai.com/v1");
    assert_eq!(url(None, &[variable]), "http://127.0.0.1:11434/v1");
    assert_eq!(url(Some(file), &[variable]), "http://b/v1");
    assert_eq!(url(Some(file), &[variable, own]), "http://c/v1");
}

#[test]
fn openai_base_url_that_a_file_overrides_is_reported() {
    let reported = |file: &str, variables: &[(&str, &str)]| {
        let (_directory, path) = self::file(file);
        let loaded = load(&Sources {
            file: Some(path),
            environment: environment(variables),
            ..Sources::default()
        });
        let unread = loaded.unwrap().unread_variables.into_iter().map(|unread| {
            let (key, origin) = unread.overridden.unwrap();
            let Origin::File { line, .. } = origin else {
                panic!("{origin}")
            };
            (unread.variable, key, line)
        });
        unread.collect::<Vec<_>>()
    };
    let variable = ("OPENAI_BASE_URL", "http://127.0.0.1:11434/v1/");
    let own = ("AGENT_RUNTIME__PROVIDERS__OPENAI__BASE_URL", "http://c/v1");
    let named = |line| {
        let key = "providers.openai.base_url".to_owned();
        vec![("OPENAI_BASE_URL".to_owned(), key, line)]
    };
    let file = "[providers.openai]\nbase_url = 'http://b/v1'";
    assert_eq!(reported(file, &[variable]), named(2));
    // A file that is a copy of the defaults.
    let line = 1 + DEFAULTS.lines().position(|line| line == "[providers.openai]").unwrap();
    let line = line
        + 1
        + DEFAULTS
            .lines()
            .skip(line)
            .position(|line| line.starts_with("base_url"))
            .unwrap();
    assert_eq!(reported(DEFAULTS, &[variable]), named(line));
    // Nothing is reported if the variable is not set or the file has the same address.
    assert_eq!(reported(file, &[]), []);
    assert_eq!(reported(file, &[("OPENAI_BASE_URL", "")]), []);
    assert_eq!(
        reported(
            "[providers.openai]\nbase_url = 'http://127.0.0.1:11434/v1'",
            &[variable]
        ),
        []
    );
    assert_eq!(reported("[providers.openai]\nstream = false", &[variable]), []);
    assert_eq!(reported(file, &[variable, own]), []);
}
