-- The bytes of each tenant's contents, and contents in an object store. Triggers do the
-- bookkeeping.

-- The bytes of all contents of a tenant, uncompressed. A tenant without contents has no row.
create table content_totals (
    bytes integer not null,
    tenant text not null primary key
) strict;

insert into content_totals (tenant, bytes)
select tenant, sum(size) from contents group by tenant having sum(size) > 0;

create trigger new_contents_are_counted after insert on contents when new.size > 0
begin
    insert into content_totals (tenant, bytes) values (new.tenant, new.size)
    on conflict (tenant) do update set bytes = bytes + excluded.bytes;
end;

create trigger removed_contents_are_counted after delete on contents
begin
    update content_totals set bytes = bytes - old.size where tenant = old.tenant;
    delete from content_totals where tenant = old.tenant and bytes <= 0;
end;

-- A content in an object store has 64 or more as its encoding. The rest is the encoding of the
-- object, and the payload is the id of the object. Each object belongs to one row at most.
create index contents_in_objects on contents (tenant) where encoding >= 64;

-- The objects that no content refers to: those that are being written, and those whose content was
-- removed. A sweep deletes the object, then the row.
create table content_objects (
    recorded_at integer not null,
    -- More than 0 if no content may refer to the object any more.
    is_removable integer not null,
    tenant text not null,
    hash blob not null,
    object blob not null,
    primary key (tenant, hash, object)
) strict;
create index content_objects_by_time on content_objects (is_removable, recorded_at);

-- A content may only refer to an object that is being written, and that no sweep has claimed.
create trigger contents_take_their_objects after insert on contents when new.encoding >= 64
begin
    select raise(abort, 'the object of a content was given up before the content was stored')
    where not exists (
        select 1 from content_objects
        where tenant = new.tenant and hash = new.hash and object = new.payload and is_removable = 0);
    delete from content_objects where tenant = new.tenant and hash = new.hash and object = new.payload;
end;

create trigger contents_give_up_their_objects after delete on contents when old.encoding >= 64
begin
    insert into content_objects (tenant, hash, object, recorded_at, is_removable)
    values (old.tenant, old.hash, old.payload, cast(round(unixepoch('subsec') * 1000) as integer) * 1000, 1);
end;
