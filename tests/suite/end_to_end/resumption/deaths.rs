//! A run with commands whose process dies at each of its writes: what comes of it is what would
//! have been.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::json;
use test_support::databases::{Engine, TestDatabase};
use test_support::environment::variable;
use test_support::full_store::Refusals;
use test_support::wait::until;
use values::json::Value;

use super::world::{ACCEPTS_ONLY, Replica, World, messages_of};
use crate::end_to_end::on_every_store;
use crate::end_to_end::workspaces::archives::SHOW;
use crate::end_to_end::workspaces::operations::plain_shell;
use crate::end_to_end::workspaces::shell::TOOLS;
use crate::support::gated::assert_without_gap;
use crate::support::members::assert_members;
use crate::support::mock_model::{Reply, content_text, last_user_text};

on_every_store!(a_run_whose_process_dies_at_any_write_has_each_effect_as_its_history_says);

/// Commands may write to the ledger, which is outside of their directory.
const SETTINGS: [(&str, &str); 1] = [("sandbox.isolation", "none")];
/// The text of a call that was interrupted.
const UNCERTAIN: &str = "its effect is uncertain";

/// The commands of a run, by the numbers of their calls. `WORD` differs in each run, so that each
/// stores contents of its own; those of the first command are several. The results say nothing of
/// the files, so that they are the same if a command before had no effect.
const COMMANDS: [(usize, &str); 3] = [
    (
        0,
        "mkdir -p s/d s/e && seq 1 40000 | sed s/^/WORD/ > s/large && ln -s d s/l && echo 1 > s/d/run && \
         chmod +x s/d/run",
    ),
    (2, "mkdir -p t && echo WORD >> t/a && rm -rf s/d && echo WORD > w"),
    (4, "[ ! -e s ] || cp -r s u; echo WORD > v; cp t/a t/b; rm t/a"),
];

/// The call of this number in the run with this word, or `None` after the last one.
fn call(number: usize, word: &str, ledger: &Path) -> Option<(&'static str, Value)> {
    let lines = |first: &str| format!("{first}\n2\n3\n4\n5\n6\n7\n");
    Some(match number {
        1 => ("write_file", json!({"path": "t/a", "content": lines("first")})),
        3 => {
            let edits = json!([{"old": "first", "new": word}]);
            ("edit_file", json!({"path": "t/a", "edits": edits}))
        }
        _ => {
            let (_, command) = COMMANDS.iter().find(|(of, _)| *of == number)?;
            let command = command.replace("WORD", word);
            let command = format!("{command}; echo {number} >> {}; echo done", ledger.display());
            ("shell", json!({"command": command}))
        }
    })
}

/// A run as it ended.
struct Ended {
    /// The numbers of the calls whose effect is uncertain.
    uncertain: BTreeSet<usize>,
    /// How often each command was run to its end.
    ledger: Vec<usize>,
    /// The messages, without the word and with the usual result in place of an uncertain one.
    history: Vec<Value>,
}

async fn a_run_whose_process_dies_at_any_write_has_each_effect_as_its_history_says(database: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let ledgers = folder.path().to_owned();
    let world = World::new(database, move |request| {
        let word = last_user_text(request);
        let messages = request["messages"].as_array().unwrap();
        if request["model"] == "lister" {
            return match messages[messages.len() - 1]["role"].as_str() {
                Some("user") => Reply::call("list", "shell", &json!({"command": SHOW})),
                _ => Reply::text("listed"),
            };
        }
        let number = messages.iter().filter(|message| message["role"] == "tool").count();
        match call(number, &word, &ledgers.join(&word)) {
            Some((tool, arguments)) => Reply::call(&format!("c{number}"), tool, &arguments),
            None => Reply::text("done"),
        }
    })
    .await;
    // Accepts the runs.
    let door = world.replica_with(&ACCEPTS_ONLY).await;
    let agent = json!({"model": "mock/m", "tools": TOOLS, "durability": "step"});
    door.put_agent("worker", agent).await;
    door.put_agent("lister", json!({"model": "mock/lister", "tools": TOOLS}))
        .await;
    world.database.count_writes().await;
    let begin = async |word: &str| door.begin(word, json!({"agent": "worker"})).await;
    let start = async || {
        let refusals = Refusals::default();
        let replica = world.replica_watched(&SETTINGS, Some(refusals.clone())).await;
        (replica, refusals)
    };

    let run = begin("undisturbed").await;
    let accepted = world.database.writes().await;
    let (mut replica, mut refusals) = start().await;
    let expected = ended(&replica, &run, "undisturbed", folder.path()).await;
    assert!(expected.uncertain.is_empty());

    // A row of SQLite is seldom a transaction of its own, so most of them make no difference. The
    // first one lets the transaction end that accepts the run.
    let is_postgres = world.database.engine == Engine::Postgres;
    let plays_all = is_postgres || variable("PROPTEST_CASES").is_some();
    let step = if plays_all { 1 } else { 3 };
    let mut writes = i64::from(!is_postgres);
    let (mut uncertain, mut in_vain, mut has_ended) = (BTreeSet::new(), 0, false);
    while !has_ended {
        let word = format!("word{writes}x");
        world.database.make_room(Some(accepted + writes)).await;
        let run = begin(&word).await;
        until("a write that is refused, or the end of the run", async || {
            has_ended = door.shown(&run).await["status"] == "completed";
            has_ended || refusals.any()
        })
        .await;
        replica.die_in_full_store(&world).await;
        (replica, refusals) = start().await;
        let found = ended(&replica, &run, &word, folder.path()).await;
        assert!(found.uncertain.len() <= 1, "{:?}", found.uncertain);
        for (number, _) in COMMANDS {
            let times = found.ledger.iter().filter(|of| **of == number).count();
            let is_uncertain = found.uncertain.contains(&number);
            assert!(times == 1 || (is_uncertain && times == 0), "{number}: {times}");
            // Its effects outside of the files have happened, and those on the files are undone.
            in_vain += usize::from(is_uncertain && times == 1);
        }
        assert_eq!(found.history, expected.history, "after {writes} writes");
        uncertain.extend(found.uncertain);
        writes += step;
    }
    if plays_all {
        // Each command was interrupted at least once, and at least once after its end.
        assert_eq!(uncertain, BTreeSet::from(COMMANDS.map(|(number, _)| number)));
        assert!(in_vain >= COMMANDS.len(), "{in_vain} of {writes}");
    }
    assert!(in_vain > 0);
    replica.finish().await;
    door.finish().await;
}

/// Waits for the end of a run, and checks it: its files are those of the calls that have an effect,
/// on a replica that restores them. Returns what differs from run to run.
async fn ended(replica: &Replica, run: &Value, word: &str, folder: &Path) -> Ended {
    let ended = replica.ended(run).await;
    assert_members!(ended, {"status": "completed", "output_text": "done"});
    let events = replica.events_after(run, 0).await;
    assert_without_gap(&events);
    let ends = events.iter().filter(|event| event["type"] == "run.completed");
    assert_eq!(ends.count(), 1);

    let (mut uncertain, mut number) = (BTreeSet::new(), 0);
    let mut history = Vec::new();
    for message in messages_of(replica, &ended).await {
        let mut content = message["content"].clone();
        if message["role"] == "tool" {
            let text = &mut content[0]["content"][0]["text"];
            if text.as_str().unwrap().contains(UNCERTAIN) {
                uncertain.insert(number);
                *text = json!("done\n");
                content[0].as_object_mut().unwrap().remove("is_error");
            }
            number += 1;
        }
        let content = content.to_string().replace(word, "WORD");
        history.push(json!([message["role"], content]));
    }

    let oracle = tempfile::tempdir().unwrap();
    for number in (0..5).filter(|number| !uncertain.contains(number)) {
        apply(oracle.path(), number, word);
    }
    let session = ended["session_id"].as_str().unwrap();
    let listing = json!({"agent": "lister", "input": "list", "base_session_id": session});
    let listing = replica.run_with(listing).await;
    let messages = messages_of(replica, &listing).await;
    let listed = messages.iter().rfind(|message| message["role"] == "tool").unwrap();
    let listed = content_text(&listed["content"][0]["content"]);
    assert_eq!(listed, plain_shell(oracle.path(), SHOW), "{uncertain:?}");
    let verified = replica.get(&format!("/v1/sessions/{session}/verify")).await;
    assert_eq!(verified["valid"], true, "{verified:#}");

    let ledger = fs::read_to_string(folder.join(word)).unwrap_or_default();
    let ledger = ledger.lines().map(|line| line.parse().unwrap());
    Ended {
        uncertain,
        ledger: ledger.collect(),
        history,
    }
}

/// Does in a directory what a call does.
fn apply(directory: &Path, number: usize, word: &str) {
    let (_, arguments) = call(number, word, Path::new("/dev/null")).unwrap();
    let file = directory.join("t/a");
    match number {
        1 => {
            fs::create_dir_all(directory.join("t")).unwrap();
            fs::write(file, arguments["content"].as_str().unwrap()).unwrap();
        }
        3 => {
            let text = fs::read_to_string(&file).unwrap();
            fs::write(file, text.replace("first", word)).unwrap();
        }
        _ => {
            let command = arguments["command"].as_str().unwrap();
            plain_shell(directory, &format!("umask 022; {command}"));
        }
    }
}
