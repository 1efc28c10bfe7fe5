-- The bytes of each tenant's contents, and contents in an object store.
--
-- Triggers do the bookkeeping, so it is right also for what replicas of the version before write.
-- These replicas can't read contents in an object store: update all of them before you configure
-- one.

-- No replica may write contents between the sum and the triggers.
lock table contents in share row exclusive mode;

-- The bytes of all contents of a tenant, uncompressed. A tenant without contents has no row.
create table content_totals (
    bytes bigint not null,
    tenant text not null primary key
);

insert into content_totals (tenant, bytes)
select tenant, sum(size) from contents group by tenant having sum(size) > 0;

create function count_new_contents() returns trigger language plpgsql as $$
begin
    insert into content_totals (tenant, bytes)
    select tenant, sum(size) from changed group by tenant having sum(size) > 0 order by tenant
    on conflict (tenant) do update set bytes = content_totals.bytes + excluded.bytes;
    return null;
end
$$;

create function count_removed_contents() returns trigger language plpgsql as $$
begin
    update content_totals total set bytes = total.bytes - removed.bytes
    from (select tenant, sum(size) as bytes from changed group by tenant) removed
    where total.tenant = removed.tenant;
    delete from content_totals where bytes <= 0 and tenant in (select tenant from changed);
    return null;
end
$$;

create trigger new_contents_are_counted after insert on contents
    referencing new table as changed for each statement execute function count_new_contents();
create trigger removed_contents_are_counted after delete on contents
    referencing old table as changed for each statement execute function count_removed_contents();

-- A content in an object store has 64 or more as its encoding. The rest is the encoding of the
-- object, and the payload is the id of the object. Each object belongs to one row at most.
create index contents_in_objects on contents (tenant) where encoding >= 64;

-- The objects that no content refers to: those that are being written, and those whose content was
-- removed. A sweep deletes the object, then the row.
create table content_objects (
    recorded_at timestamptz not null,
    -- More than 0 if no content may refer to the object any more.
    is_removable smallint not null,
    tenant text not null,
    hash bytea not null,
    object bytea not null,
    primary key (tenant, hash, object)
);
create index content_objects_by_time on content_objects (is_removable, recorded_at);

-- A content may only refer to an object that is being written, and that no sweep has claimed.
create function take_content_object() returns trigger language plpgsql as $$
begin
    delete from content_objects
    where tenant = new.tenant and hash = new.hash and object = new.payload and is_removable = 0;
    if not found then
        raise exception 'the object of a content was given up before the content was stored';
    end if;
    return null;
end
$$;

create function give_up_content_object() returns trigger language plpgsql as $$
begin
    insert into content_objects (tenant, hash, object, recorded_at, is_removable)
    values (old.tenant, old.hash, old.payload, clock_timestamp(), 1);
    return null;
end
$$;

create trigger contents_take_their_objects after insert on contents
    for each row when (new.encoding >= 64) execute function take_content_object();
create trigger contents_give_up_their_objects after delete on contents
    for each row when (old.encoding >= 64) execute function give_up_content_object();
