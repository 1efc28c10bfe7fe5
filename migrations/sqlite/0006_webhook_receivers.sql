-- The host that a delivery goes to, so that deliveries to one host share its slots. Deliveries of earlier versions have none.
alter table webhook_deliveries add column receiver text;
