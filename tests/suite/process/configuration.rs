//! Configuration as an operator meets it: what is in force is explained, and a mistake is told with its place and a suggestion.

use super::binary::Home;

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
    let shown = home.succeed(&["check-config", "--set", "log.filter=warn"]).await;
    for (line, origin) in [
        ("runs.max_concurrent = 7", "agent-runtime.toml:3"),
        ("log.filter = \"warn\"", "command line"),
        ("http.max_json_depth = 64", "default"),
        (
            "http.listen = \"127.0.0.1:0\"",
            "environment AGENT_RUNTIME__HTTP__LISTEN",
        ),
        (
            "providers.openai.api_key_env = \"OPENAI_API_KEY\"",
            "default (key found)",
        ),
    ] {
        let found = shown.lines().find(|shown| shown.starts_with(line));
        let found = found.unwrap_or_else(|| panic!("no {line:?} in {shown}"));
        assert!(found.ends_with(&format!("# {origin}")), "{found}");
    }
    for secret in ["hunter", "sk-very-secret"] {
        assert!(!shown.contains(secret), "{shown}");
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
    for (home, arguments, told) in [
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
            &["--listn", "127.0.0.1:1"],
            &["unexpected argument '--listn'", "--listen"],
        ),
        (&Home::with_file(), &["--config", "nowhere.toml"], &["nowhere.toml"]),
    ] {
        for command in ["serve", "check-config"] {
            let complaint = home.fail(&[&[command], arguments].concat()).await;
            for part in told {
                assert!(complaint.contains(part), "no {part:?} in {complaint}");
            }
            assert!(!complaint.contains("panicked"), "{complaint}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_that_makes_no_sense_is_told_with_its_key() {
    for (setting, told) in [
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
        for part in told {
            assert!(complaint.contains(part), "{setting}: no {part:?} in {complaint}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_agent_file_is_told_with_its_key() {
    for (text, told) in [
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
            "no hook is named \"limit\"",
        ),
        (
            "name = 'x'\nmodel = 'demo/demo'\nsystem_prompt = '{{ open'",
            "x.toml: the agent \"x\" can't work",
        ),
    ] {
        let home = Home::with_file();
        home.write("config/agents/x.toml", text);
        let complaint = home.fail(&["serve"]).await;
        assert!(
            complaint.contains("config/agents/x.toml: ") && complaint.contains(told),
            "no {told:?} in {complaint}"
        );
        assert_eq!(complaint.lines().count(), 1, "{complaint}");
    }
}
