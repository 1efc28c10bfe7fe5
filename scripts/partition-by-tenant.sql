-- Partitions the large tables by tenant, with their rows. Stop all processes of the service before,
-- and make a backup. Then:
--
--   psql "$DATABASE_URL" --single-transaction -v ON_ERROR_STOP=1 -f scripts/partition-by-tenant.sql
--
-- Every key of these tables begins with the tenant, so each statement for one tenant finds its
-- partition. Names of tables, indexes and triggers stay as they were.
do $$
declare
    partitions constant int := 16;
    -- The small tables stay whole, and so does the queue, which all tenants share.
    large constant text[] := array['sessions', 'runs', 'history_segments', 'history_branches', 'states',
        'contents', 'run_events', 'run_journal', 'run_messages', 'idempotency_keys'];
    name text;
    statement text;
    rest text[];
begin
    foreach name in array large loop
        -- What is to be made again, in the words of the server: keys, other indexes, triggers.
        select array_agg(def) into rest from (
            select format('alter table %I add constraint %I %s', name, conname, pg_get_constraintdef(oid)) def
                from pg_constraint where conrelid = name::regclass and contype in ('p', 'u')
            union all
            select pg_get_indexdef(indexrelid) from pg_index where indrelid = name::regclass
                and not exists (select from pg_constraint where conindid = indexrelid)
            union all
            select pg_get_triggerdef(oid) from pg_trigger where tgrelid = name::regclass and not tgisinternal
        ) defs;
        execute format('alter table %I rename to whole', name);
        execute format('create table %I (like whole including all excluding indexes) partition by hash (tenant)', name);
        for part in 0..partitions - 1 loop
            execute format('create table %I partition of %I for values with (modulus %s, remainder %s)',
                name || '_' || part, name, partitions, part);
        end loop;
        execute format('insert into %I select * from whole', name);
        drop table whole;
        foreach statement in array rest loop
            execute statement;
        end loop;
    end loop;
end $$;
analyze;
