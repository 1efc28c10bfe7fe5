//! Runs the command by which the page on operation copies a SQLite store.

use super::blocks::{blocks, read};
use super::service::{Service, has_program};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_copy_of_a_store_is_whole_and_only_its_owner_may_read_it() {
    if !has_program("sqlite3") {
        return;
    }
    let Some(service) = Service::start(&[]).await else {
        return;
    };
    let run = |commands: &str| service.run(commands).unwrap_or_else(|fault| panic!("{fault}"));
    let page = blocks(&read("docs/operations.md"));
    let copying: Vec<_> = page.iter().filter(|block| block.text.contains(".backup")).collect();
    let [copy] = copying[..] else { panic!("{copying:#?}") };
    run("agent-runtime run hello");
    // Without its own mask, the command would make a file that everyone may read.
    let shown = run(&format!("umask 0\n{}\nstat -c %a backup.db", copy.text));
    assert_eq!(shown, "600\n");
    let sessions = run("agent-runtime sessions list 2>/dev/null");
    assert!(sessions.contains("demo"), "{sessions}");
    let copied = run("agent-runtime sessions list --store-url sqlite://backup.db 2>/dev/null");
    assert_eq!(copied, sessions);
}
