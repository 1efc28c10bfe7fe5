//! The documentation says of each index which query needs it.

use std::collections::BTreeSet;

use test_support::databases::Engine;

use crate::fixtures::Fixture;

on_both_engines!(each_index_is_documented);

/// Returns the names in the first column of the table of indexes.
fn documented() -> BTreeSet<String> {
    let page = include_str!("../../../../../migrations/README.md");
    let (_, table) = page.split_once("| index | which query needs it |").unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let names = rows.flat_map(|row| row.split('|').nth(1).unwrap().split(','));
    names.map(|name| name.trim().trim_matches('`').to_owned()).collect()
}

async fn each_index_is_documented(fixture: Fixture) {
    let statement = match fixture.database.engine {
        Engine::Postgres => {
            "select indexrelid::regclass::text from pg_index i join pg_class c on c.oid = i.indrelid
            where c.relnamespace = current_schema()::regnamespace and not exists (
                select from pg_constraint where conindid = i.indexrelid)"
        }
        Engine::Sqlite => "select name from sqlite_master where type = 'index' and sql is not null",
    };
    let found: BTreeSet<String> = fixture.database.texts(statement).await.into_iter().collect();
    let mut documented = documented();
    if fixture.database.engine == Engine::Sqlite {
        documented.retain(|name| !name.ends_with("_by_metadata"));
    }
    assert_eq!(found, documented);
}
