//! Tests that secrets are read from the environment and from files, and never shown.

use secrecy::ExposeSecret as _;

use super::{environment, file, from_environment, from_file, from_override, message};
use crate::config::*;

#[test]
fn secrets_are_read_from_files() {
    let (_directory, path) = file("postgres://app:hunter2@db/app\n");
    let path = path.to_str().unwrap();
    let loaded = from_environment(&[("AGENT_RUNTIME__STORE__URL_FILE", path)]).unwrap();
    assert_eq!(loaded.config.store.url.expose(), "postgres://app:hunter2@db/app");
    assert!(loaded.config.store.url.expose().starts_with("postgres"));

    let loaded = from_override(&format!("providers.vllm.api_key_file={path}")).unwrap();
    let key = loaded.config.providers["vllm"].api_key.as_ref().unwrap();
    assert_eq!(key.expose_secret(), "postgres://app:hunter2@db/app");

    let both = from_environment(&[
        ("AGENT_RUNTIME__STORE__URL", "sqlite://a.db"),
        ("AGENT_RUNTIME__STORE__URL_FILE", path),
    ]);
    assert_eq!(
        message(both),
        "environment AGENT_RUNTIME__STORE__URL and environment AGENT_RUNTIME__STORE__URL_FILE \
         both set `store.url`: remove one of them"
    );
    assert_eq!(
        message(from_environment(&[("AGENT_RUNTIME__BOARD__URL_FILE", "/nowhere")])),
        "environment AGENT_RUNTIME__BOARD__URL_FILE: `board.url`: \
         cannot read the secret from /nowhere"
    );
    assert_eq!(
        message(from_override("providers.vllm.api_key_file=/nowhere")),
        "command line: `providers.vllm.api_key_file`: cannot read the secret from /nowhere"
    );
}

#[test]
fn signing_secrets_are_read_from_their_configured_source() {
    let (_directory, path) = file("whsec_new\nwhsec_old\n");
    let text = format!(
        "[webhooks.secrets.both]\nenv = 'SIGNING'\nfile = '{}'\n[webhooks.secrets.variable]\nenv = 'SIGNING'\n\
         [webhooks.secrets.unset]\nenv = 'UNSET'\n",
        path.display()
    );
    let (_directory, path) = file(&text);
    let loaded = load(&Sources {
        file: Some(path),
        environment: environment(&[("SIGNING", "whsec_hunter2")]),
        ..Sources::default()
    });
    let loaded = loaded.unwrap();
    let secret = |name: &str| {
        let secret = loaded.config.webhook_secrets[name].secret.as_ref();
        secret.map(|secret| secret.expose_secret().to_owned())
    };
    assert_eq!(secret("both").as_deref(), Some("whsec_new\nwhsec_old"));
    assert_eq!(secret("variable").as_deref(), Some("whsec_hunter2"));
    assert_eq!(secret("unset"), None);
    let explained = loaded.explain();
    for shown in [explained.clone(), format!("{loaded:?}")] {
        assert!(!shown.contains("whsec_"), "{shown}");
    }
    let note = |key: &str| {
        let line = explained.lines().find(|line| line.starts_with(key)).unwrap();
        line.ends_with("(set)")
    };
    assert!(note("webhooks.secrets.variable.env"));
    assert!(!note("webhooks.secrets.unset.env"));

    assert_eq!(
        message(from_override("webhooks.secrets.main.file=/nowhere")),
        "command line: `webhooks.secrets.main.file`: cannot read the secret from /nowhere"
    );
    assert_eq!(
        message(from_file("[webhooks.secrets.main]\n")),
        "app.toml:1: `webhooks.secrets.main`: names neither `env` nor `file`"
    );
    let pasted = message(from_override("webhooks.secrets.main.env=whsec_hunter2"));
    assert!(!pasted.contains("hunter2"), "{pasted}");
}

#[test]
fn secrets_of_tools_are_read_from_their_configured_source() {
    let (_directory, path) = file("token-hunter2\n");
    let text = format!(
        "[tools.secrets.file]\nfile = '{}'\n[tools.secrets.variable]\nenv = 'TOKEN'\n[tools.secrets.unset]\nenv = 'UNSET'\n",
        path.display()
    );
    let (_directory, path) = file(&text);
    let loaded = load(&Sources {
        file: Some(path),
        environment: environment(&[("TOKEN", "other-hunter2")]),
        ..Sources::default()
    });
    let loaded = loaded.unwrap();
    let secrets = &loaded.config.tool_secrets;
    let secret = |name: &str| secrets[name].as_ref().map(|secret| secret.expose_secret().to_owned());
    assert_eq!(secret("file").as_deref(), Some("token-hunter2"));
    assert_eq!(secret("variable").as_deref(), Some("other-hunter2"));
    assert_eq!(secret("unset"), None);
    let explained = loaded.explain();
    assert!(
        explained.contains("tools.secrets.variable.env = \"TOKEN\""),
        "{explained}"
    );
    assert!(!format!("{explained}{loaded:?}").contains("hunter2"), "{explained}");
    assert_eq!(
        message(from_file("[tools.secrets.main]\n")),
        "app.toml:1: `tools.secrets.main`: names neither `env` nor `file`"
    );
    assert_eq!(
        message(from_override("tools.http_fetch.methods=[]")),
        "command line: `tools.http_fetch.methods`: names no method, such as \"GET\""
    );
    assert!(message(from_override("tools.http_fetch.allow_networks=['x']")).contains("a network is an IP address"));
    assert!(message(from_override("tools.http_fetch.allow_hosts=['a:1']")).contains("a host is a name"));
}

#[test]
fn secrets_are_never_shown() {
    let loaded = load(&Sources {
        environment: environment(&[
            ("AGENT_RUNTIME__STORE__URL", "postgres://app:hunter2@db/app"),
            ("AGENT_RUNTIME__STORE__LISTEN_URL", "postgres://app:hunter2@direct/app"),
            ("AGENT_RUNTIME__BOARD__URL", "redis://:hunter2@cache"),
            ("AGENT_RUNTIME__PROVIDERS__VLLM__HEADERS", "{ X-Auth = 'hunter2' }"),
            ("OPENAI_API_KEY", "hunter2"),
        ]),
        ..Sources::default()
    })
    .unwrap();
    let explained = loaded.explain();
    for shown in [
        format!("{loaded:?}"),
        format!("{:#?}", loaded.config),
        explained.clone(),
    ] {
        assert!(!shown.contains("hunter2"), "{shown}");
    }
    let line = |start: &str| {
        let line = explained.lines().find(|line| line.starts_with(start)).unwrap();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        line("store.url"),
        "store.url = \"postgres://app:[redacted]@db/app\" # environment AGENT_RUNTIME__STORE__URL"
    );
    assert_eq!(line("http.listen"), "http.listen = \"127.0.0.1:8080\" # default");
    assert_eq!(
        line("providers.openai.api_key_env"),
        "providers.openai.api_key_env = \"OPENAI_API_KEY\" # default (set)"
    );
    assert_eq!(
        line("providers.groq.api_key_env"),
        "providers.groq.api_key_env = \"GROQ_API_KEY\" # default (not set)"
    );

    for (key, value) in [
        ("store.url", "mysql://app:hunter2@db"),
        ("store.listen_url", "sqlite://hunter2"),
        ("board.url", "hunter2"),
        ("providers.openai.base_url", "https://app:hunter2@h/v1"),
        ("providers.openai.api_key_env", "sk-hunter2"),
        ("providers.openai.api_key", "sk-hunter2"),
        ("providers.openai.headers.Authorization", "Bearer hunter2"),
        ("store.url.x", "postgres://app:hunter2@db"),
        ("store..url", "postgres://app:hunter2@db"),
        ("providers.openai.headers", "{ hunter2"),
    ] {
        let sources = Sources {
            overrides: vec![(key.to_owned(), value.to_owned())],
            ..Sources::default()
        };
        let error = load(&sources).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
    }
    let error = from_file("[store]\nurl = 'postgres://app:hunter2@db' x\n").unwrap_err();
    assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
}
