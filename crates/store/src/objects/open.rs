//! Opens an object store by its address: a directory, S3, Google Cloud Storage or Azure.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Deserializer};
use tokio::sync::Semaphore;
use url::Url;

use super::error::OpenObjectsError;
use super::{MAX_REQUESTS, Objects};
use values::settings::{integer, secret_text};

/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long one attempt of a request may take.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(15);
/// The most further attempts of a request.
const MAX_RETRIES: usize = 4;
/// How long a request may take with its further attempts, and with the wait for its turn.
const PATIENCE: Duration = Duration::from_secs(40);

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

impl Objects {
    /// Opens an object store. Connects to nothing.
    pub(crate) fn open(settings: &ObjectSettings) -> Result<Self, OpenObjectsError> {
        let address = settings.url.clone();
        let invalid = |source| OpenObjectsError::Address {
            address: address.clone(),
            source,
        };
        let unusable = |source: object_store::Error| OpenObjectsError::Client {
            address: address.clone(),
            source: source.into(),
        };
        let kind = ObjectStoreKind::of(&settings.url).ok_or_else(|| invalid("its scheme is unknown".into()))?;
        let url = Url::parse(&settings.url).map_err(|error| invalid(error.into()))?;
        let (client, prefix) = if kind == ObjectStoreKind::Directory {
            (directory(&url)?, Path::default())
        } else {
            let prefix = Path::from_url_path(url.path()).map_err(|error| invalid(error.into()))?;
            let client = remote(kind, &url, &settings.options).map_err(unusable)?;
            (client, prefix)
        };
        Ok(Self {
            client,
            address: settings.url.clone(),
            prefix,
            min_bytes: settings.min_bytes,
            patience: PATIENCE,
            requests: Arc::new(Semaphore::new(MAX_REQUESTS)),
        })
    }
}

/// Opens a directory, and creates it if it is missing. Files are synced, since a row that is
/// committed needs its object.
fn directory(url: &Url) -> Result<Arc<dyn ObjectStore>, OpenObjectsError> {
    let unusable = |source| OpenObjectsError::Client {
        address: url.to_string(),
        source,
    };
    let path = url
        .to_file_path()
        .map_err(|()| unusable("it is not the absolute path of a directory".into()))?;
    std::fs::create_dir_all(&path).map_err(|error| unusable(error.into()))?;
    let files = LocalFileSystem::new_with_prefix(&path).map_err(|error| unusable(error.into()))?;
    Ok(Arc::new(files.with_fsync(true).with_automatic_cleanup(true)))
}

fn remote(
    kind: ObjectStoreKind,
    url: &Url,
    options: &[(String, SecretString)],
) -> Result<Arc<dyn ObjectStore>, object_store::Error> {
    let retry = RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(2),
            base: 2.0,
        },
        max_retries: MAX_RETRIES,
        retry_timeout: PATIENCE,
    };
    let client = ClientOptions::new()
        .with_connect_timeout(CONNECT_TIMEOUT)
        .with_timeout(ATTEMPT_TIMEOUT);
    let options = options.iter().map(|(name, value)| (name, value.expose_secret()));
    // A client's own options come first, so that the ones that are given can replace some of them.
    Ok(match kind {
        ObjectStoreKind::Google => {
            let builder = GoogleCloudStorageBuilder::new()
                .with_client_options(client)
                .with_retry(retry);
            let builder = options.fold(builder.with_url(url.as_str()), |builder, (name, value)| match name
                .parse::<GoogleConfigKey>(
            ) {
                Ok(key) => builder.with_config(key, value),
                Err(_) => builder,
            });
            Arc::new(builder.build()?)
        }
        ObjectStoreKind::Azure => {
            let builder = MicrosoftAzureBuilder::new()
                .with_client_options(client)
                .with_retry(retry);
            let builder = options.fold(builder.with_url(url.as_str()), |builder, (name, value)| match name
                .parse::<AzureConfigKey>()
            {
                Ok(key) => builder.with_config(key, value),
                Err(_) => builder,
            });
            Arc::new(builder.build()?)
        }
        ObjectStoreKind::S3 | ObjectStoreKind::Directory => {
            let builder = AmazonS3Builder::new().with_client_options(client).with_retry(retry);
            let builder = options.fold(builder.with_url(url.as_str()), |builder, (name, value)| match name
                .parse::<AmazonS3ConfigKey>(
            ) {
                Ok(key) => builder.with_config(key, value),
                Err(_) => builder,
            });
            Arc::new(builder.build()?)
        }
    })
}
