-- The answer of a run is stored once, and indexes have only the rows that their queries need. No
-- row is rewritten.

-- How many of the last messages of the run's session are its output. Null if `output` has them.
alter table runs add column output_messages integer;

-- Only runs without a session need these. A run with a session is found by the session.
-- To find the run that has reserved a session id.
create unique index if not exists runs_without_session_by_session on runs (tenant, session_id)
    where status not in ('completed', 'stopped', 'waiting');
-- To list the runs that began at a session, and to find out whether a queued run begins there.
create index if not exists runs_without_session_by_base on runs (tenant, base_session_id, run_id)
    where status not in ('completed', 'stopped', 'waiting');
drop index runs_by_session;
drop index runs_by_base;

-- The ids of sessions begin with their age.
drop index sessions_by_age;
