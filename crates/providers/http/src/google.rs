use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use formwork_core::{Fault, FaultKind};
use gcp_auth::TokenProvider;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use http::request::Parts;
use tokio::sync::OnceCell;

use crate::Credentials;
use crate::secrets::{SentSecrets, sensitive};

/// Google's application default credentials: each request has an access token of them as `Authorization: Bearer`.
///
/// The sources are, in this order: the key of a service account in the file `GOOGLE_APPLICATION_CREDENTIALS`, the file of
/// `gcloud auth application-default login`, the metadata server of Google Cloud, and the command `gcloud`. Tokens are renewed
/// before they expire. The requests for tokens trust the system's certificates and use no proxy.
///
/// ```
/// use formwork_http::{GoogleCredentials, HttpTransport};
///
/// let transport = HttpTransport::new("https://aiplatform.googleapis.com")?.with_credentials(GoogleCredentials::new());
/// # let _ = transport;
/// # Ok::<(), formwork_http::ConfigError>(())
/// ```
#[derive(Default)]
pub struct GoogleCredentials {
    provider: OnceCell<Arc<dyn TokenProvider>>,
    known: SentSecrets,
}

/// The scope of all services of Google Cloud; what an account may do is limited by its roles.
const SCOPES: [&str; 1] = ["https://www.googleapis.com/auth/cloud-platform"];

impl GoogleCredentials {
    /// Returns the credentials, which are looked for when the first request needs them.
    pub fn new() -> Self {
        Self::default()
    }
}

#[async_trait]
impl Credentials for GoogleCredentials {
    async fn authorize(&self, request: &mut Parts, _: &Bytes, _: Option<&HeaderMap>) -> Result<(), Fault> {
        let failed = |error: gcp_auth::Error| {
            let message = format!(
                "Google's application default credentials gave no access token: {error}; run `gcloud auth \
                 application-default login`, or name the key file of a service account in GOOGLE_APPLICATION_CREDENTIALS"
            );
            Fault::new(FaultKind::Auth, message)
        };
        let provider = self.provider.get_or_try_init(gcp_auth::provider).await.map_err(failed)?;
        let token = provider.token(&SCOPES).await.map_err(failed)?;
        self.known.add(token.as_str());
        let value = sensitive(format!("Bearer {}", token.as_str()), "access token")?;
        request.headers.insert(AUTHORIZATION, value);
        Ok(())
    }

    fn redact(&self, text: &str) -> String {
        self.known.redact(text)
    }
}

formwork_core::debug_fields!(GoogleCredentials {});
