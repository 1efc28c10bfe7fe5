//! The route for AG-UI. `faces/ag_ui` has the forms of requests and events; here runs are found,
//! started and followed.

mod body;
mod hydration;
mod run_request;
mod stream;

pub(super) mod run;
