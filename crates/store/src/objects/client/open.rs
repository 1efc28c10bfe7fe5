//! Opens an object store by its address: a directory, S3, Google Cloud Storage or Azure.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};
use rustls::crypto::ring;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::Semaphore;
use url::Url;

use super::{MAX_REQUESTS, ObjectClient};
use crate::objects::error::OpenObjectsError;
use crate::objects::settings::{ObjectSettings, ObjectStoreKind};

/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long one attempt of a request may take.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(15);
/// The most further attempts of a request.
const MAX_RETRIES: usize = 4;
/// How long a request may take with its further attempts, and with the wait for its turn.
const PATIENCE: Duration = Duration::from_secs(40);

impl ObjectClient {
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
    // reqwest takes the cryptography of the process, and panics if none is installed. `Err` means
    // that it is.
    let _ = ring::default_provider().install_default();
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
