-- Files of workspaces: their contents, and the hash of the tree of each environment.
--
-- Replicas of the version before may run beside this one, with two limits. If one of them removes
-- sessions, their files stay until the tenant's files change again. If one of them deletes a tenant,
-- the tenant's files stay: delete the tenant again.

-- Contents by their hash: files, chunks of large files, and directories. They are written before
-- the session that refers to them. A content that no session and no journal refers to is swept.
create table contents (
    -- When a run last wrote it, or found that it is stored already; a few minutes may be missing.
    written_at timestamptz not null,
    -- Its bytes, uncompressed.
    size bigint not null,
    -- 0: a file or a chunk; 1: the list of the chunks of a file; 2: a directory.
    kind smallint not null,
    schema_version smallint not null,
    encoding smallint not null,
    tenant text not null,
    hash bytea not null,
    payload bytea not null,
    primary key (tenant, hash)
) with (toast_tuple_target = 4080);
alter table contents alter column payload set storage external;
create trigger contents_are_immutable
    before update of size, kind, schema_version, encoding, tenant, hash, payload on contents
    for each row execute function refuse_update();

-- The tenants that may have contents to sweep. A tenant has a row from a change of its contents, or
-- a removal of an environment with files, until a sweep finds that all has come to rest.
create table content_sweeps (
    changed_at timestamptz not null,
    swept_at timestamptz not null,
    tenant text not null primary key
);

-- The hash of the root directory of an environment's files. Null for an environment without files.
alter table states add column tree bytea;
-- Replicas of the version before do not set the column, and may store environments with files. A
-- sweep decodes the states that have this value.
alter table states alter column tree set default '';
create index states_by_tree on states (tenant, tree) where kind = 'environment' and tree is not null;

-- The same for the environment at an entry of a journal.
alter table run_journal add column tree bytea;
create index run_journal_by_tree on run_journal (tenant) where tree is not null;
