//! An object of the API, from the store or from a service: its JSON, and the fields that a command
//! reads. So both sources have the same output.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

/// An object of the API.
#[derive(Debug, Clone)]
pub(super) struct Item<F> {
    json: Box<RawValue>,
    /// The fields that the command reads.
    pub(super) fields: F,
}

impl<F: DeserializeOwned> Item<F> {
    /// Makes the item that the API would show.
    pub(super) fn of(view: &impl Serialize) -> serde_json::Result<Self> {
        Self::parse(to_raw_value(view)?)
    }

    /// Makes the items that the API would show.
    pub(super) fn all(views: impl IntoIterator<Item: Serialize>) -> serde_json::Result<Vec<Self>> {
        views.into_iter().map(|view| Self::of(&view)).collect()
    }

    fn parse(json: Box<RawValue>) -> serde_json::Result<Self> {
        let fields = serde_json::from_str(json.get())?;
        Ok(Self { json, fields })
    }
}

impl<'de, F: DeserializeOwned> Deserialize<'de> for Item<F> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(Box::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl<F> Serialize for Item<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(serializer)
    }
}
