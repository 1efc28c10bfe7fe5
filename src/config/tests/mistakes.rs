//! Tests the messages that the operator reads after a mistake.

use std::error::Error as _;

use proptest::prelude::*;

use super::{from_environment, from_file, from_override, message};
use crate::config::*;

/// Checks the message of each file.
fn check_files(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(message(from_file(text)), *expected);
    }
}

/// Checks the message of each variable with its value.
fn check_variables(cases: &[((&str, &str), &str)]) {
    for (variable, expected) in cases {
        assert_eq!(message(from_environment(&[*variable])), *expected);
    }
}

/// Checks the message of each override.
fn check_overrides(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(message(from_override(text)), *expected);
    }
}

#[test]
fn a_named_file_must_exist() {
    let sources = Sources {
        file: Some("/nowhere/app.toml".into()),
        ..Sources::default()
    };
    let error = load(&sources).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot read the configuration file /nowhere/app.toml"
    );
    assert!(error.source().is_some());
}

#[test]
fn the_files_of_tls_belong_together() {
    check_files(&[
        (
            "[http.tls]\ncertificate = 'tls.crt'\n",
            "app.toml:2: `http.tls.certificate`: needs `http.tls.key` as well",
        ),
        (
            "[http.tls]\nkey = 'tls.key'\n",
            "app.toml:2: `http.tls.key`: needs `http.tls.certificate` as well",
        ),
        (
            "[http.tls]\nclient_ca = 'clients.crt'\n",
            "app.toml:2: `http.tls.client_ca`: has no effect without `http.tls.certificate`",
        ),
    ]);
}

#[test]
fn a_mistyped_key_is_an_error_with_a_suggestion() {
    check_files(&[
        (
            "[http]\nlisten = '[::1]:0'\nmax_conections = 5\n",
            "app.toml:3: unknown key `http.max_conections`, did you mean `http.max_connections`?",
        ),
        (
            "\n[htpp]\nlisten = '[::1]:0'\n",
            "app.toml:2: unknown key `htpp`, did you mean `http`?",
        ),
        (
            "[board]\nlisten = '[::1]:0'\n",
            "app.toml:2: unknown key `board.listen`, did you mean `http.listen`?",
        ),
        (
            "[providers.openai]\napi_key = 'sk-1'\n",
            "app.toml:2: unknown key `providers.openai.api_key`, \
             did you mean `providers.openai.api_key_env`?",
        ),
        ("[http]\nzzz = 1\n", "app.toml:2: unknown key `http.zzz`"),
        (
            "[providers.OpenAI]\nstream = false\n",
            "app.toml:1: `providers.OpenAI`: differs from the existing `openai` only in case",
        ),
        (
            "[providers.openia]\nstream = false\n",
            "app.toml:2: `providers.openia`: missing field `kind`, \
             did you mean `providers.openai`?",
        ),
        ("[providers.x]\n", "app.toml:1: `providers.x`: missing field `kind`"),
    ]);
}

#[test]
fn a_mistyped_variable_or_override_is_an_error_with_a_suggestion() {
    check_variables(&[
        (
            ("AGENT_RUNTIME__HTTP__LISTN", "[::1]:0"),
            "environment AGENT_RUNTIME__HTTP__LISTN: unknown key `http.listn`, \
             did you mean `http.listen`?",
        ),
        (
            ("AGENT_RUNTIME__HTTP_LISTEN", "[::1]:0"),
            "environment AGENT_RUNTIME__HTTP_LISTEN: unknown key `http_listen`, \
             did you mean `http.listen`?",
        ),
        (
            ("AGENT_RUNTIME__HTTP__MAX__CONNECTIONS", "5"),
            "environment AGENT_RUNTIME__HTTP__MAX__CONNECTIONS: unknown key `http.max.connections`, \
             did you mean `http.max_connections`?",
        ),
        (
            ("AGENT_RUNTIME__HTTP__MAX__CONECTIONS", "5"),
            "environment AGENT_RUNTIME__HTTP__MAX__CONECTIONS: unknown key `http.max.conections`, \
             did you mean `http.max_connections`?",
        ),
        (
            ("AGENT_RUNTIME__PROVIDERS__OPENAI__BASE__URL", "x"),
            "environment AGENT_RUNTIME__PROVIDERS__OPENAI__BASE__URL: unknown key `providers.openai.base.url`, \
             did you mean `providers.openai.base_url`?",
        ),
        (
            ("AGENT_RUNTIME__HTPP__MAX_CONECTIONS", "5"),
            "environment AGENT_RUNTIME__HTPP__MAX_CONECTIONS: unknown key `htpp.max_conections`, did you mean `http`?",
        ),
        (
            ("AGENT_RUNTIME__STORE__URL_FILE__X", "x"),
            "environment AGENT_RUNTIME__STORE__URL_FILE__X: unknown key `store.url_file.x`, \
             did you mean `store.url`?",
        ),
        (
            ("AGENT_RUNTIME__HTTP__LISTEN__X", "1"),
            "environment AGENT_RUNTIME__HTTP__LISTEN__X: unknown key `http.listen.x`",
        ),
        (
            ("AGENT_RUNTIME__", "1"),
            "environment AGENT_RUNTIME__: unknown key `\"\"`",
        ),
        (
            ("AGENT_RUNTIME__HTTP__LISTEN_FILE", "x"),
            "environment AGENT_RUNTIME__HTTP__LISTEN_FILE: unknown key `http.listen_file`, \
             did you mean `http.listen`?",
        ),
        (
            ("AGENT_RUNTIME__HTTP__LISTEN", "\u{FFFD}"),
            "the environment variable AGENT_RUNTIME__HTTP__LISTEN is not valid UTF-8",
        ),
    ]);
    check_overrides(&[
        (
            "log.fromat=json",
            "command line: unknown key `log.fromat`, did you mean `log.format`?",
        ),
        ("log", "`log` is not of the form section.key=value"),
    ]);
}

#[test]
fn a_wrong_value_names_its_key_its_origin_and_what_was_wanted() {
    check_files(&[
        (
            "[http]\nmax_connections = 0\n",
            "app.toml:2: `http.max_connections`: invalid value: integer `0`, \
             expected an integer from 1 to 1000000",
        ),
        (
            "[http]\nheader_timeout = 10\n",
            "app.toml:2: `http.header_timeout`: invalid type: integer `10`, \
             expected a duration from 10ms to 10m, such as \"30s\" or \"250ms\"",
        ),
        (
            "[http]\nheader_timeout = '0s'\n",
            "app.toml:2: `http.header_timeout`: invalid value: string \"0s\", \
             expected a duration from 10ms to 10m, such as \"30s\" or \"250ms\"",
        ),
    ]);
    check_variables(&[
        (
            ("AGENT_RUNTIME__STORE__MIGRATE", "yes"),
            "environment AGENT_RUNTIME__STORE__MIGRATE: `store.migrate`: \
             invalid type: string \"yes\", expected a boolean",
        ),
        (
            ("AGENT_RUNTIME__PROVIDERS__OPENAI__MODELS", "a,b"),
            "environment AGENT_RUNTIME__PROVIDERS__OPENAI__MODELS: `providers.openai.models`: \
             invalid type: string \"a,b\", expected a sequence",
        ),
    ]);
    check_overrides(&[
        (
            "http.max_connections=-1",
            "command line: `http.max_connections`: invalid value: integer `-1`, \
             expected an integer from 1 to 1000000",
        ),
        (
            "http.allowed_hosts=[\"agents.example:8080\"]",
            "command line: `http.allowed_hosts`: invalid value: string \"agents.example:8080\", \
             expected host names or IP addresses without ports, such as \"agents.example.org\"",
        ),
        (
            "http.allowed_origins=[\"https://app.example:443\"]",
            "command line: `http.allowed_origins`: invalid value: string \"https://app.example:443\", expected origins of \
             web pages, such as \"https://app.example.org\" or \"http://localhost:6274\"",
        ),
        (
            "http.max_json_depth=101",
            "command line: `http.max_json_depth`: invalid value: integer `101`, \
             expected an integer from 8 to 100",
        ),
        (
            "http.listen=8080",
            "command line: `http.listen`: invalid value: string \"8080\", expected an IP address \
             or localhost, and a port, such as \"127.0.0.1:8080\" or \"[::1]:8080\"",
        ),
        (
            "store.url=data.db",
            "command line: `store.url`: invalid value: a string (not shown), expected a URL such as \
             \"sqlite://data/agent-runtime.db\" or \"postgres://USER@HOST/DATABASE\"",
        ),
    ]);
}

#[test]
fn a_provider_or_price_that_makes_no_sense_is_refused() {
    check_files(&[
        (
            "[providers.x]\nkind = 'openai'\n",
            "app.toml:2: `providers.x.kind`: unknown variant `openai`, expected one of \
             `openai_chat`, `openai_responses`, `anthropic`, `gemini`, `bedrock`, `scripted`; \
             write `openai_responses`, or `openai_chat` for chat completions",
        ),
        (
            "[providers.x]\nkind = 'Claude'\n",
            "app.toml:2: `providers.x.kind`: unknown variant `Claude`, expected one of \
             `openai_chat`, `openai_responses`, `anthropic`, `gemini`, `bedrock`, `scripted`; write `anthropic`",
        ),
        (
            "[providers.x]\nkind = 'antropic'\n",
            "app.toml:2: `providers.x.kind`: unknown variant `antropic`, expected one of \
             `openai_chat`, `openai_responses`, `anthropic`, `gemini`, `bedrock`, `scripted`; did you mean `anthropic`?",
        ),
        (
            "[providers.x]\nkind = 'openai_chat'\n",
            "app.toml:2: `providers.x.base_url`: missing: this kind of provider needs an address",
        ),
        (
            "[providers.x]\nkind = 'scripted'\nbase_url = 'http://h'\n",
            "app.toml:3: `providers.x.base_url`: a scripted provider has no address",
        ),
        (
            "[prices.'opnai/gpt']\ninput = 1\noutput = 1\n",
            "app.toml:2: `prices.\"opnai/gpt\"`: there is no provider `opnai`, \
             did you mean `openai`?",
        ),
        (
            "[prices.gpt]\ninput = 1\noutput = 1\n",
            "app.toml:2: `prices.gpt`: a price is named \"PROVIDER/MODEL\"",
        ),
        (
            "[prices.'openai/gpt']\ninput = nan\noutput = 1\n",
            "app.toml:2: `prices.\"openai/gpt\".input`: invalid value: floating point `NaN`, \
             expected an amount of US dollars from 0 to 1000000",
        ),
        (
            "[context_windows]\n'opnai/gpt' = 1\n",
            "app.toml:2: `context_windows.\"opnai/gpt\"`: there is no provider `opnai`, \
             did you mean `openai`?",
        ),
        (
            "[context_windows]\ngpt = 1\n",
            "app.toml:2: `context_windows.gpt`: a context window is named \"PROVIDER/MODEL\"",
        ),
        (
            "[capabilities.'opnai/*']\npictures = false\n",
            "app.toml:2: `capabilities.\"opnai/*\"`: there is no provider `opnai`, did you mean `openai`?",
        ),
        (
            "[context_windows]\n'openai/gpt' = 0\n",
            "app.toml:2: `context_windows.\"openai/gpt\"`: invalid value: integer `0`, expected a nonzero u64",
        ),
    ]);
    check_overrides(&[
        (
            "providers.openai.script=x.toml",
            "command line: `providers.openai.script`: only a scripted provider plays a script",
        ),
        (
            "providers.openai.headers.Authorization=x",
            "command line: `providers.openai.headers.Authorization`: a header with credentials: \
             name their source in api_key_env or api_key_file instead",
        ),
    ]);
}

#[test]
fn values_are_checked_alone_and_against_each_other() {
    check_files(&[
        (
            "[limits.tenants.Acme]\nmax_steps = 1\n",
            "app.toml:2: `limits.tenants.Acme`: a tenant's name has 1 to 64 lower-case letters, digits, `-` and `_`",
        ),
        (
            "[limits.tenants.acme]\nrequest_burst = 5\n",
            "app.toml:2: `limits.tenants.acme.request_burst`: bounds nothing without `requests_per_second`",
        ),
        (
            "[limits.each_tenant]\nmodels = ['']\n",
            "app.toml:2: `limits.each_tenant.models`: a pattern has 1 to 200 visible characters; `*` stands for any text, as in `openai/*`",
        ),
        (
            "[limits.each_tenant]\nmodels = ['demo/*', 'openai']\n",
            "app.toml:2: `limits.each_tenant.models`: \"openai\" matches no model, since models are named PROVIDER/MODEL: \
             write `openai/*`, or allow the provider by `providers`",
        ),
        (
            "[limits.tenants.acme]\nmodels = ['openai']\n",
            "app.toml:2: `limits.tenants.acme.models`: \"openai\" matches no model, since models are named PROVIDER/MODEL: \
             write `openai/*`, or allow the provider by `providers`",
        ),
        (
            "[sandbox]\nephemeral = ['target/', '[z-a]']\n",
            "app.toml:2: `sandbox.ephemeral`: \"[z-a]\" is not a pattern of a .gitignore file: error parsing glob '[z-a]': invalid range; 'z' > 'a'",
        ),
        (
            "http = 3\n",
            "app.toml:1: `http`: a table was wanted, not a value (integer)",
        ),
    ]);
    check_overrides(&[
        (
            "runs.budget.max_cost=-0.5",
            "command line: `runs.budget.max_cost`: invalid value: floating point `-0.5`, \
             expected an amount of US dollars from 0 to 1000000",
        ),
        (
            "runs.budget.max_tokens=0",
            "command line: `runs.budget.max_tokens`: invalid value: integer `0`, \
             expected an integer of 1 or more",
        ),
        (
            "models.retry_max_delay=1ms",
            "command line: `models.retry_max_delay`: shorter than `models.retry_base_delay`",
        ),
    ]);
}

#[test]
fn a_log_filter_names_levels() {
    // `tracing` reads a word that is not a level as a module, and would log nothing else.
    for filter in [
        "inof",
        "verbose",
        "info,verbose",
        "sqlx",
        "agent_runtime::http",
        "info,",
        "sqlx=loud",
        "",
    ] {
        let result = from_override(&format!("log.filter={filter}"));
        let wanted = format!(
            "command line: `log.filter`: invalid value: string {filter:?}, expected log levels such as \"info\", \
             or \"info,sqlx=warn\" for a module's own"
        );
        assert_eq!(message(result), wanted);
    }
    for filter in [
        "off",
        "WARN",
        "info,sqlx=warn",
        "info,sqlx=off",
        "agent_runtime::http=debug",
        "warn,[run{id=5}]=trace",
    ] {
        let loaded = from_override(&format!("log.filter={filter}")).unwrap();
        assert_eq!(loaded.config.log.filter, filter);
    }
}

#[test]
fn a_variable_for_traces_that_would_be_ignored_is_refused() {
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");
    for (name, value, expected) in [
        ("OTEL_TRACES_EXPORTER", "zipkin", "otlp, none"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "http/protobuf"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json", "http/protobuf"),
        ("OTEL_TRACES_SAMPLER", "sometimes", "always_on"),
        ("OTEL_TRACES_SAMPLER", "jaeger_remote", "always_on"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s", "milliseconds"),
    ] {
        let text = message(from_environment(&[endpoint, (name, value)]));
        assert!(text.starts_with(&format!("environment {name}: ")), "{text}");
        assert!(text.contains(expected), "{text}");
        // They mean nothing without a collector.
        from_environment(&[(name, value)]).unwrap();
    }
    for (ratio, is_valid) in [
        ("0.5", true),
        ("1", true),
        ("2", false),
        ("NaN", false),
        ("half", false),
    ] {
        let sampler = ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio");
        let loaded = from_environment(&[endpoint, sampler, ("OTEL_TRACES_SAMPLER_ARG", ratio)]);
        assert_eq!(loaded.is_ok(), is_valid, "{ratio}");
    }
    let of_traces = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf");
    let of_all = ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    let loaded = from_environment(&[endpoint, of_traces, of_all]).unwrap();
    assert!(loaded.config.traces.has_collector);
}

#[test]
fn an_identity_provider_that_is_not_clear_is_refused() {
    for resource in [
        "https://a.example/x",
        "https://a.example?x",
        "http://a.example",
        "a.example",
    ] {
        let text = message(from_file(&format!("[auth]\nresource = '{resource}'\n")));
        assert_eq!(
            text,
            "app.toml:2: `auth.resource`: must be an https address without a path, \
             such as \"https://agents.example.org\""
        );
    }
    let issuer = |name: &str| {
        format!("[auth.issuers.{name}]\nissuer = 'https://i.example'\naudience = ['a']\ntenant = 'acme'\n")
    };
    check_files(&[
        (
            &(issuer("one") + &issuer("two")),
            "app.toml:6: `auth.issuers.two.issuer`: another table has the same issuer",
        ),
        (
            &(issuer("one") + "limits_claim = '/plan'\n"),
            "app.toml:5: `auth.issuers.one.limits_claim`: names limits, and `limits.profiles` has none",
        ),
        (
            &(issuer("one") + "tenant_claim = '/tenant'\n"),
            "app.toml:4: `auth.issuers.one.tenant`: either `tenant` or `tenant_claim` is needed",
        ),
        (
            "[limits.profiles.trial]\nlight_runs = 3\n",
            "app.toml:2: unknown key `limits.profiles.trial.light_runs`, did you mean `limits.each_tenant.light_runs`?",
        ),
    ]);
}

#[test]
fn a_broken_file_names_the_line() {
    let text = message(from_file("[http]\nlisten = \"127.0.0.1:80\n"));
    assert!(text.starts_with("app.toml:2: not valid TOML: "), "{text}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_input_makes_the_loader_panic(
        key in "(http|store|providers|prices|context_windows|runs)[.=_\"'a-z]{0,12}",
        value in "[\\[{\"'a-z0-9=.,\u{e9} \n-]{0,16}",
        variable in "(HTTP|PROVIDERS|PRICES|BOARD)[_A-Z]{0,16}",
    ) {
        drop(from_file(&format!("{key} = {value}")));
        drop(from_override(&format!("{key}={value}")));
        drop(from_environment(&[(&format!("AGENT_RUNTIME__{variable}"), &value)]));
    }
}
