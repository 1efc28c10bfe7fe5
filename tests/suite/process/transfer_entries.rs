//! Lines of sessions with all that commands can make: links, empty directories and rights.

use std::fs;

use test_support::databases::{Engine, TestDatabase};

use super::binary::Home;
use super::sandbox::{put_commands, results};
use super::service::Service;
use super::transfer::{export, id, import, migrated, show};
use crate::end_to_end::workspaces::archives::{MAKE, SHOW};
use crate::end_to_end::workspaces::operations::plain_shell;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn links_empty_directories_and_rights_go_to_another_engine_and_back() {
    let Some(postgres) = TestDatabase::new(Engine::Postgres).await else {
        return;
    };
    let (here, there, back) = (Home::with_file(), Home::new(postgres.url()), migrated().await);
    there.succeed(&["migrate"]).await;
    let oracle = tempfile::tempdir().unwrap();
    let change = "rm -r deep; rmdir empty/inner; ln -sfn nothing file; chmod -x bin/run; mkdir later";
    let service = Service::start(&here).await;
    let (mut line, mut expected) = (Vec::new(), Vec::new());
    for command in [MAKE, change] {
        put_commands(&service, "maker", &[command]).await;
        let base = line.last().map(String::as_str);
        line.push(id(&service.run("maker", base, "go").await));
        plain_shell(oracle.path(), command);
        expected.push(plain_shell(oracle.path(), SHOW));
    }
    service.stop().await;

    let file = here.path().join("line.zst");
    export(&here, &line[1], &file).await;
    let note = import(&there, &file).await;
    assert!(note.contains("2 sessions, 2 of them new"), "{note}");
    let second = there.path().join("line.zst");
    export(&there, &line[1], &second).await;
    assert_eq!(fs::read(&file).unwrap(), fs::read(&second).unwrap());
    import(&back, &second).await;

    for home in [&there, &back] {
        let service = Service::start(home).await;
        put_commands(&service, "shower", &[SHOW]).await;
        for (session, expected) in line.iter().zip(&expected) {
            assert_eq!(show(home, session).await, show(&here, session).await);
            let list = ["sessions", "files", session, "--recursive", "--json"];
            assert_eq!(home.succeed(&list).await, here.succeed(&list).await);
            // A command finds each entry as it was made.
            let shown = service.run("shower", Some(session), "go").await;
            assert_eq!(results(&service, &shown).await.last(), Some(expected));
        }
        let verified = service.get(&format!("/v1/sessions/{}/verify", line[1])).await;
        assert_eq!(verified["valid"], true, "{verified:#}");
        service.stop().await;
    }
}
