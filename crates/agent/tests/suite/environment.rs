//! The environment of an execution: changed by tools and hooks, read by prompts, and persisted with
//! the steps that changed it.

use std::collections::BTreeMap;
use std::sync::Arc;

use agent::hooks::HookContext;
use agent::journal::{JournalEntry, Progress};
use agent::ports::{Tool, ToolContext, ToolError, ToolOutput, ToolSpec};
use agent::state::{AgentState, ExecutionStatus};
use agent::{AgentEvent, HookPoint, StatePart};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde_json::json;
use test_support::fake_model::{asks_for, says};
use values::json::Value;
use values::session::EnvironmentState;
use workspace::FilePath;
use workspace::environment::Environment;

use crate::hooks::probe::Probe;
use crate::memory_journal::{Break, MemoryJournal};
use crate::setup::Setup;

/// Writes down a word: in the variable `word`, and in the file `words/WORD`.
#[derive(Debug)]
struct Write(ToolSpec);

impl Write {
    fn tool() -> Arc<dyn Tool> {
        Arc::new(Self(ToolSpec {
            name: "write".to_owned(),
            description: "Writes down a word.".to_owned(),
            parameters: json!({"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}),
            idempotent: true,
            read_only: false,
            destructive: false,
            timeout: None,
        }))
    }
}

impl Tool for Write {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(&'a self, arguments: Value, context: &'a ToolContext) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let word = arguments["word"].as_str().unwrap();
            let changes = BTreeMap::from([("word".to_owned(), json!(word))]);
            let environment = &context.environment;
            environment
                .change_variables(changes)
                .map_err(|error| ToolError::new(error.to_string()))?;
            let edit = environment.edit().await.unwrap();
            let path = FilePath::parse(&format!("words/{word}")).unwrap();
            let bytes = Bytes::from(word.to_owned());
            let tree = edit.tree.with_file(&path, bytes, false).await.unwrap();
            edit.finish(tree).await.unwrap();
            Ok(ToolOutput::text(format!("wrote {word}")))
        })
    }
}

/// Writes one word, then another, then says something.
fn writing() -> Setup {
    Setup::new([
        asks_for(&[("c1", "write", r#"{"word": "one"}"#)]),
        asks_for(&[("c2", "write", r#"{"word": "two"}"#)]),
        says("done"),
    ])
    .with_any_tool(Write::tool())
}

fn prompting(setup: &Setup) -> AgentState {
    setup
        .new_state()
        .with_system_prompt("The word is {{ variables.word | default('none') }}.".to_owned())
}

fn prompts(setup: &Setup) -> Vec<String> {
    let requests = setup.model.requests();
    requests.iter().map(|request| request.system.to_string()).collect()
}

async fn words(environment: &Environment) -> Vec<String> {
    let dir = FilePath::parse("words").unwrap();
    let entries = environment.tree().list(Some(&dir)).await.unwrap();
    entries.into_iter().map(|(name, _)| name).collect()
}

#[tokio::test(start_paused = true)]
async fn a_change_by_a_tool_shows_in_the_next_prompt_and_in_the_export() {
    let setup = writing();
    let state = setup.run_from(prompting(&setup), "go").await;
    assert_eq!(state.status(), Some(ExecutionStatus::Completed));
    assert_eq!(
        prompts(&setup),
        ["The word is none.", "The word is one.", "The word is two."]
    );
    let events = setup.events.events().into_iter();
    let changed = events.filter_map(|event| match event {
        AgentEvent::StateChanged {
            step_number,
            hook: None,
            point: None,
            changes,
            variables,
            ..
        } => Some((step_number, changes, variables["word"].clone())),
        _ => None,
    });
    assert_eq!(
        changed.collect::<Vec<_>>(),
        ["one", "two"].map(|word| (1 + usize::from(word == "two"), vec![StatePart::Variables], json!(word)))
    );
    let exported = setup.environment.export().await.unwrap();
    assert_eq!(exported.variables, BTreeMap::from([("word".to_owned(), json!("two"))]));
    assert_eq!(words(&setup.environment.again(exported)).await, ["one", "two"]);
}

#[tokio::test(start_paused = true)]
async fn a_change_by_a_hook_shows_in_the_next_prompt_and_in_an_event() {
    let set = |name: &'static str, value: Value| {
        move |mut context: HookContext| {
            let changes = BTreeMap::from([(name.to_owned(), value.clone())]);
            context.environment = context
                .environment
                .with_variables(changes.clone())
                .with_resources(changes);
            context
        }
    };
    let setup =
        Setup::new([says("done")]).with_hook(Probe::changing(HookPoint::BeforeStep, set("word", json!("hook"))));
    setup.run_from(prompting(&setup), "go").await;
    assert_eq!(prompts(&setup), ["The word is hook."]);
    let changes: Vec<_> = setup
        .events
        .events()
        .into_iter()
        .filter_map(|event| match event {
            AgentEvent::StateChanged {
                changes,
                metadata,
                variables,
                ..
            } => Some((changes, metadata, variables)),
            _ => None,
        })
        .collect();
    assert_eq!(
        changes,
        [(
            vec![StatePart::Variables, StatePart::Resources],
            values::json::Object::new(),
            BTreeMap::from([("word".to_owned(), json!("hook"))])
        )]
    );
    let exported = setup.environment.export().await.unwrap();
    assert_eq!(exported.variables["word"], json!("hook"));
    assert_eq!(exported.resources["word"], json!("hook"));
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_exceeds_a_limit_fails_the_execution_and_changes_nothing() {
    let setup = Setup::new([says("done")]).with_hook(Probe::changing(HookPoint::BeforeStep, |mut context| {
        let large = BTreeMap::from([("large".to_owned(), json!("x".repeat(1 << 20)))]);
        context.environment = context.environment.with_variables(large);
        context
    }));
    let state = setup.run().await;
    assert_eq!(state.status(), Some(ExecutionStatus::Failed));
    let errors = state.errors();
    let errors: Vec<_> = errors.iter().collect();
    assert_eq!((errors.len(), errors[0].code.as_str()), (1, "hook_failed"));
    assert!(
        errors[0].message.contains("at most 262144 bytes"),
        "{}",
        errors[0].message
    );
    assert_eq!(setup.environment.export().await.unwrap(), EnvironmentState::default());
}

#[tokio::test(start_paused = true)]
async fn an_execution_that_dies_at_any_entry_goes_on_with_the_files_of_its_earlier_steps() {
    let whole = MemoryJournal::new();
    let setup = writing().with_journal(Arc::clone(&whole) as _);
    setup.run_from(prompting(&setup), "go").await;
    let expected = setup.environment.export().await.unwrap();
    let revisions: Vec<u64> = whole
        .entries()
        .iter()
        .filter_map(|entry| match entry {
            JournalEntry::EnvironmentChanged { revision, .. } => Some(*revision),
            _ => None,
        })
        .collect();
    assert_eq!(
        revisions,
        [2, 4],
        "the environment is persisted once for each call that changes it"
    );
    for at in 1..=whole.appends().len() {
        let journal = MemoryJournal::broken(at, Break::DiesAfter);
        let died = writing().with_journal(Arc::clone(&journal) as _);
        let begun = prompting(&died);
        tokio::select! {
            _ = died.run_from(begun.clone(), "go") => panic!("it does not die at {at}"),
            () = journal.died() => (),
        }
        let Some(progress) = Progress::of(begun, journal.entries()).unwrap() else {
            continue;
        };
        // Another process has only what is persisted: the contents, and the last state of the
        // environment.
        let persisted = progress.environment.clone();
        let environment = match persisted {
            Some(persisted) => died.environment.again(*persisted.state).at_revision(persisted.revision),
            None => died.environment.again(EnvironmentState::default()),
        };
        let made = died.model.requests().len();
        let rest = vec![
            asks_for(&[("c1", "write", r#"{"word": "one"}"#)]),
            asks_for(&[("c2", "write", r#"{"word": "two"}"#)]),
            says("done"),
        ];
        let is_answered = journal
            .entries()
            .iter()
            .filter(|entry| matches!(entry, JournalEntry::CallsRequested { .. }))
            .count();
        let rest = rest.into_iter().skip(is_answered);
        let again = Setup::new(rest)
            .with_any_tool(Write::tool())
            .with_environment(environment);
        let state = again.go_on(progress).await;
        assert_eq!(
            state.status(),
            Some(ExecutionStatus::Completed),
            "died at {at} after {made} requests"
        );
        assert_eq!(again.environment.export().await.unwrap(), expected, "died at {at}");
    }
}
