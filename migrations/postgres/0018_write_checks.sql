-- Where a service that is asked whether it is ready tries to write. The rows are rolled back, so
-- the table stays empty. The value is stored out of line and is not compressed, so each attempt
-- needs more than a page.

create table write_checks (filler bytea not null);
alter table write_checks alter column filler set storage external;
