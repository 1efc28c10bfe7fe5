-- Files of workspaces: their contents, and the hash of the tree of each environment.

-- Contents by their hash: files, chunks of large files, and directories. They are written before
-- the session that refers to them. A content that no session and no journal refers to is swept.
create table contents (
    -- When a run last wrote it, or found that it is stored already; a few minutes may be missing.
    written_at integer not null,
    -- Its bytes, uncompressed.
    size integer not null,
    -- 0: a file or a chunk; 1: the list of the chunks of a file; 2: a directory.
    kind integer not null,
    schema_version integer not null,
    encoding integer not null,
    tenant text not null,
    hash blob not null,
    payload blob not null,
    primary key (tenant, hash)
) strict;
create trigger contents_are_immutable
before update of size, kind, schema_version, encoding, tenant, hash, payload on contents
begin select raise(abort, 'rows of contents are immutable'); end;

-- The tenants that may have contents to sweep. A tenant has a row from a change of its contents, or
-- a removal of an environment with files, until a sweep finds that all has come to rest.
create table content_sweeps (
    changed_at integer not null,
    swept_at integer not null,
    tenant text not null primary key
) strict;

-- The hash of the root directory of an environment's files. Null for an environment without files.
alter table states add column tree blob;
create index states_by_tree on states (tenant, tree) where kind = 'environment' and tree is not null;

-- The same for the environment at an entry of a journal.
alter table run_journal add column tree blob;
create index run_journal_by_tree on run_journal (tenant) where tree is not null;
