-- Where a service that is asked whether it is ready tries to write. The rows are rolled back, so
-- the table stays empty. Rows are not compressed, so each one needs a page of its own.

create table write_checks (filler bytea not null);
alter table write_checks alter column filler set storage external;
