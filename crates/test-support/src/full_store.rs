//! A store that takes so many writes and is full from then on, until there is room again.
//!
//! A process that can't write any more has left in the store what one has that died after its last
//! write.

use std::fmt::{Debug, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tracing::field::{Field, Visit};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use crate::databases::{Engine, TestDatabase};

/// In the error of a write that is refused, on either engine.
const REFUSAL: &str = "disk is full";

/// The tables whose writes count: those of which a run writes the same rows each time. Leases and
/// events are written now and then.
const COUNTED: [&str; 7] = [
    "contents",
    "history_branches",
    "history_segments",
    "run_journal",
    "runs",
    "sessions",
    "states",
];

/// The number of a sequence stays when its transaction is rolled back, a local setting does not.
const PREPARE_POSTGRES: &str = "
    create table room (writes bigint);
    insert into room values (null);
    create sequence writes;
    create function writes_so_far() returns bigint language sql as $$
        select case when is_called then last_value else 0 end from writes $$;
    create function take_room() returns trigger language plpgsql as $$ begin
        if current_setting('room.taken', true) is distinct from 'yes' then
            if writes_so_far() >= (select writes from room) then
                raise exception 'disk is full' using errcode = '53100';
            end if;
            if tg_argv[0] = 'counted' then
                perform nextval('writes'), set_config('room.taken', 'yes', true);
            end if;
        end if;
        if tg_op = 'DELETE' then return old; end if;
        return new;
    end $$";

/// No further row has room in the last table, and SQLite says that the disk is full.
const PREPARE_SQLITE: &str = "
    create table room (writes bigint);
    insert into room values (null);
    create table writes (count bigint);
    insert into writes values (0);
    create table full_table (id integer primary key autoincrement);
    insert into full_table values (9223372036854775807)";

impl TestDatabase {
    /// Prepares [`Self::make_room`] on a store that has its tables.
    pub async fn count_writes(&self) {
        let (list, prepare) = match self.engine {
            Engine::Postgres => (
                "select tablename::text from pg_tables where schemaname = 'public' order by 1",
                PREPARE_POSTGRES,
            ),
            Engine::Sqlite => (
                "select name from sqlite_master where type = 'table' and name not like 'sqlite%' order by 1",
                PREPARE_SQLITE,
            ),
        };
        let tables = self.texts(list).await;
        self.execute(prepare).await.unwrap();
        for table in tables {
            let is_counted = COUNTED.contains(&table.as_str());
            let trigger = match self.engine {
                Engine::Postgres => format!(
                    "create trigger take_room before insert or update or delete on {table}
                    for each row execute function take_room('{}')",
                    if is_counted { "counted" } else { "" }
                ),
                Engine::Sqlite => ["insert", "update", "delete"]
                    .map(|operation| {
                        format!(
                            "create trigger {table}_{operation}_takes_room before {operation} on {table} begin
                                insert into full_table select null
                                where (select count from writes) >= (select writes from room);
                                update writes set count = count + {};
                            end;",
                            u8::from(is_counted)
                        )
                    })
                    .concat(),
            };
            self.execute(&trigger).await.unwrap();
        }
    }

    /// Returns how many writes there were since the last [`Self::make_room`]. PostgreSQL counts
    /// transactions, SQLite rows.
    pub async fn writes(&self) -> i64 {
        let count = match self.engine {
            Engine::Postgres => "select writes_so_far()",
            Engine::Sqlite => "select count from writes",
        };
        self.number(count).await
    }

    /// Gives the store room for so many writes from now on; without a number, for all. A
    /// transaction for which the room is too small changes nothing.
    pub async fn make_room(&self, writes: Option<i64>) {
        let writes = writes.map_or("null".to_owned(), |writes| writes.to_string());
        let reset = match self.engine {
            Engine::Postgres => "select setval('writes', 1, false)",
            Engine::Sqlite => "update writes set count = 0",
        };
        self.execute(&format!("begin; {reset}; update room set writes = {writes}; commit"))
            .await
            .unwrap();
    }
}

/// Notes in the log of a process that writes were refused.
#[derive(Debug, Clone, Default)]
pub struct Refusals(Arc<AtomicBool>);

impl Refusals {
    /// Returns whether a write was refused.
    pub fn any(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

impl<S: tracing::Subscriber> Layer<S> for Refusals {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut text = Text::default();
        event.record(&mut text);
        if text.0.contains(REFUSAL) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
}

/// All fields of an event.
#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, _: &Field, value: &dyn Debug) {
        write!(self.0, "{value:?} ").unwrap();
    }

    fn record_error(&mut self, _: &Field, error: &(dyn std::error::Error + 'static)) {
        let mut next = Some(error);
        while let Some(error) = next {
            write!(self.0, "{error} ").unwrap();
            next = error.source();
        }
    }
}
