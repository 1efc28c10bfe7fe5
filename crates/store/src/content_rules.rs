//! The settings of a store's contents: the limits of tenants, and the object store.

use std::sync::Arc;

use super::objects::{self, ObjectSettings, Objects, OpenObjectsError};
use values::limits::Limits;

/// The settings of a store's contents.
#[derive(Debug, Clone, Default)]
pub struct ContentSettings {
    /// The limits of tenants.
    pub limits: Arc<Limits>,
    /// The object store for large contents, if there is one.
    pub objects: Option<ObjectSettings>,
}

/// The rules for contents while a store is open.
#[derive(Debug, Default)]
pub(crate) struct ContentRules {
    /// The limits of tenants.
    pub(crate) limits: Arc<Limits>,
    /// The object store for large contents, if there is one.
    pub(crate) objects: Option<Arc<dyn Objects>>,
}

impl ContentRules {
    /// Opens the object store. Connects to nothing.
    pub(crate) fn open(settings: &ContentSettings) -> Result<Self, OpenObjectsError> {
        Ok(Self {
            limits: Arc::clone(&settings.limits),
            objects: settings.objects.as_ref().map(objects::open).transpose()?,
        })
    }
}
