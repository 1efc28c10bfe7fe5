-- What is due of one tenant and to one receiver is found without what others wait for, and a tenant is passed over in one look.
drop index webhook_deliveries_by_receiver;
create index webhook_deliveries_by_tenant on webhook_deliveries (tenant, coalesce(receiver, ''), due_at)
    where status = 'pending';
