//! Tests which layer wins, and the defaults.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use secrecy::ExposeSecret as _;

use super::{environment, file};
use crate::config::schema::DEFAULTS;
use crate::config::*;
use ::models::ProviderKind;
use net::outgoing::HttpMethod;

#[test]
fn the_defaults_are_the_documented_ones() {
    let loaded = load(&Sources::default()).unwrap();
    let Config {
        http,
        store,
        board,
        runs,
        queue,
        limits: _,
        idempotency,
        models: _,
        providers,
        prices,
        tools: _,
        mcp,
        webhooks: _,
        workspace: _,
        sandbox: _,
        retention: _,
        context_windows,
        capabilities,
        agents,
        log,
    } = loaded.config;
    assert_eq!(mcp.directory.as_os_str(), "config/mcp");
    assert_eq!(http.listen.to_string(), "127.0.0.1:8080");
    assert!(!http.insecure_no_auth && http.allowed_hosts.is_empty());
    assert_eq!((http.max_body_bytes, http.max_json_depth), (10_485_760, 64));
    assert_eq!(http.max_json_values, 100_000);
    assert_eq!((http.max_header_bytes, http.max_connections), (16_384, 10_000));
    assert_eq!(http.header_timeout, Duration::from_secs(10));
    assert_eq!(http.request_timeout, Duration::from_secs(30));
    assert_eq!(http.keep_alive_interval, Duration::from_secs(15));
    assert_eq!(http.min_transfer_rate, 1_024);
    assert_eq!(store.url.expose(), "sqlite://data/agent-runtime.db");
    assert_eq!(
        (store.max_connections, store.cache_bytes, store.migrate),
        (16, 67_108_864, true)
    );
    assert_eq!(store.acquire_timeout, Duration::from_secs(5));
    assert!(board.url.is_none());
    assert_eq!(runs.default_agent, "demo");
    assert_eq!((runs.max_concurrent, runs.max_input_messages), (1024, 1000));
    assert_eq!((runs.tool_concurrency, runs.tool_timeout), (8, Duration::from_mins(1)));
    assert_eq!(runs.shutdown_grace, Duration::from_secs(20));
    assert_eq!((queue.role, queue.concurrency), (Role::All, 64));
    assert_eq!((queue.max_waiting, queue.max_attempts), (100_000, 5));
    assert_eq!(
        (queue.lease, queue.poll_interval),
        (Duration::from_secs(15), Duration::from_secs(1))
    );
    assert_eq!(idempotency.retention, Duration::from_hours(24));
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
    assert_eq!(providers["demo"].kind, ProviderKind::Scripted);
    assert_eq!(providers["anthropic"].kind, ProviderKind::Anthropic);
    assert_eq!(providers["openai_responses"].kind, ProviderKind::OpenAiResponses);
    assert!(
        providers
            .values()
            .all(|provider| provider.stream && provider.api_key.is_none())
    );
    assert!(prices.is_empty() && context_windows.is_empty() && capabilities.is_empty());
    assert_eq!(agents.directory, PathBuf::from("config/agents"));
    assert_eq!((log.format, log.filter.as_str()), (LogFormat::Text, "info"));
}

#[test]
fn tools_are_limited_by_default() {
    let Config { tools, workspace, .. } = load(&Sources::default()).unwrap().config;
    assert_eq!(
        (workspace.max_file_bytes, workspace.max_files, workspace.max_bytes),
        (33_554_432, 50_000, 1_073_741_824)
    );
    let fetch = tools.http_fetch;
    assert!(fetch.allow_networks.is_empty() && !fetch.allow_http);
    assert_eq!(fetch.ports, BTreeSet::from([80, 443]));
    assert_eq!(fetch.methods, BTreeSet::from([HttpMethod::Get, HttpMethod::Head]));
    assert_eq!((fetch.max_redirects, fetch.timeout), (5, Duration::from_secs(20)));
    assert_eq!((fetch.max_response_bytes, fetch.text_bytes), (2_097_152, 32_768));
}

#[test]
fn runs_have_a_budget_and_no_ceiling_by_default() {
    let Config { runs, limits, .. } = load(&Sources::default()).unwrap().config;
    let budget = BudgetConfig {
        max_steps: 50,
        max_tokens: None,
        max_seconds: 600,
        max_cost: None,
    };
    assert_eq!(runs.budget, budget);
    assert!(limits.each_tenant == TenantLimitsConfig::default() && limits.tenants.is_empty());
}

#[test]
fn each_protocol_has_a_provider_by_default() {
    let providers = load(&Sources::default()).unwrap().config.providers;
    for (name, kind) in [
        ("anthropic", ProviderKind::Anthropic),
        ("bedrock", ProviderKind::Bedrock),
        ("gemini", ProviderKind::Gemini),
        ("openai_responses", ProviderKind::OpenAiResponses),
    ] {
        assert_eq!(providers[name].kind, kind);
    }
    assert_eq!(providers["bedrock"].aws.region.as_deref(), Some("us-east-1"));
}

#[test]
fn models_are_asked_patiently_by_default() {
    let models = load(&Sources::default()).unwrap().config.models;
    assert_eq!(models.connect_timeout, Duration::from_secs(10));
    assert_eq!(models.first_byte_timeout, Duration::from_mins(2));
    assert_eq!(models.idle_timeout, Duration::from_mins(1));
    assert_eq!(models.total_timeout, Duration::from_mins(10));
    assert_eq!(models.max_retries, 4);
    assert_eq!(models.retry_base_delay, Duration::from_millis(500));
    assert_eq!(models.retry_max_delay, Duration::from_secs(30));
    assert_eq!(
        (models.max_event_bytes, models.max_response_bytes),
        (8_388_608, 67_108_864)
    );
}

#[test]
fn webhooks_reach_no_private_address_by_default() {
    let webhooks = load(&Sources::default()).unwrap().config.webhooks;
    assert!(!webhooks.allow_private_addresses && !webhooks.allow_http && webhooks.secrets.is_empty());
    assert_eq!(webhooks.connect_timeout, Duration::from_secs(5));
    assert_eq!(webhooks.timeout, Duration::from_secs(10));
    assert_eq!(webhooks.max_response_bytes, 1_048_576);
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
    let price = PriceConfig {
        input: 2.0,
        output: 8.0,
        cache_read: Some(0.5),
        cache_write: None,
    };
    assert_eq!(prices["openai/gpt-4.1"], price);
    assert_eq!(context_windows["openai/gpt-4.1"].get(), 1_047_576);
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
