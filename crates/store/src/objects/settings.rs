//! The settings of an object store: its address, and the options of its client.

use std::fmt;

use secrecy::SecretString;
use serde::{Deserialize, Deserializer};

use values::settings::{integer, secret_text};

/// The object store of large contents.
#[derive(Clone, Deserialize)]
pub struct ObjectSettings {
    /// The address, such as `s3://bucket/prefix`, without credentials; empty for no object store.
    #[serde(deserialize_with = "address")]
    pub url: String,
    /// Contents of at least that many bytes are in it.
    #[serde(deserialize_with = "integer::<_, 1_024, 1_048_576, _>")]
    pub min_bytes: u64,
    /// Settings of its client, such as credentials, by their names in lower case. Unknown ones are
    /// ignored.
    #[serde(skip)]
    pub options: Vec<(String, SecretString)>,
}

impl fmt::Debug for ObjectSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectSettings")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

/// The kinds of object stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectStoreKind {
    /// A directory.
    Directory,
    /// S3, or a server with its protocol.
    S3,
    /// Google Cloud Storage.
    Google,
    /// Azure Blob Storage.
    Azure,
}

impl ObjectStoreKind {
    /// Returns the kind of an address by its scheme.
    pub fn of(url: &str) -> Option<Self> {
        match url.split_once("://")?.0 {
            "file" => Some(Self::Directory),
            "s3" => Some(Self::S3),
            "gs" => Some(Self::Google),
            "az" => Some(Self::Azure),
            _ => None,
        }
    }

    /// Returns what the names of the variables begin with that configure its clients.
    pub fn variables(self) -> Option<&'static str> {
        match self {
            Self::Directory => None,
            Self::S3 => Some("AWS_"),
            Self::Google => Some("GOOGLE_"),
            Self::Azure => Some("AZURE_"),
        }
    }
}

fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let wanted = "\"\" or a URL such as \"s3://BUCKET/PREFIX\", \"gs://BUCKET\", \"az://CONTAINER\" or \
                  \"file:///var/lib/objects\", without credentials, query or fragment";
    secret_text(deserializer, wanted, |text| {
        let url = text.trim().trim_end_matches('/');
        if text.trim().is_empty() {
            return Some(String::new());
        }
        let kind = ObjectStoreKind::of(url)?;
        let (_, rest) = url.split_once("://")?;
        let plain = rest.chars().all(|c| c.is_ascii_graphic() && !"@?#\"<>\\".contains(c));
        // Only a directory has no host.
        let named = !rest.is_empty() && rest.starts_with('/') == (kind == ObjectStoreKind::Directory);
        (plain && named).then(|| url.to_owned())
    })
}
